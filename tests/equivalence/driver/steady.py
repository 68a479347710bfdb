# SPDX-License-Identifier: Apache-2.0
"""Checks what a call costs once it has been made twice: no memory, no
agreement, and for windowed ops one group of messages, which NCCL gets before
cuDNN gets any part of the call.

op_case makes each case's calls several times between marks of a preloaded
witness (witness.c), which counts."""
import os
import random
import re
import time

import numpy as np

from cases import Setting, line_of
from families.conv import sends_back
from runner import write_script

RUNS = 2
# An agreement allocates its records, so the witness would see it, too.
WATCHED = "run\nrun\nwatch before\n" + "run\n" * RUNS + "watch case\n"


def told_by(line):
    return dict(word.split("=", 1) for word in line.split()[1:])


def wrong(case, view, before, after):
    """Returns the fault that the witness's lines show, or None."""
    told = told_by(after)
    if told_by(before)["heap"] == "0":
        return "a witness that did not see it planned"
    # A graph's piece, of which there is one for each rank at most, gets a new
    # variant pack if its scale is another: one allocation.
    packs = 2 * RUNS * int(np.prod(case["mesh"])) if case.get("swings") else 0
    if int(told["heap"]) > packs:
        return f"{told['heap']} allocations of host memory"
    if told["device"] != "0":
        return f"{told['device']} allocations on the device"
    # Operands that are cut elsewhere are moved in groups of their own, before
    # the call. The input of a convolution whose channels are in pieces comes
    # with its halo, if no other operand must be moved.
    moved = [key for key in case if key.startswith("on.")]
    fetched = re.match("conv_f[ou]", case["op"]) and moved == ["on.x"] and \
        "C:" in case["on.x"]
    if not re.match("conv|pool", case["op"]) or (moved and not fetched):
        return None
    order = told["order"]
    # Two gradients: the halo of the second is sent with that of the first,
    # unless the second sends sums of rows to their owners. In a step, the first
    # gradient uses the halo that the forward call kept.
    keep = 3 if view == "whole" else case.get("keep", 0)
    if keep & 1 and sends_back(case):
        keep -= 1
    most = 2 - (keep & 1) if case["op"] == "conv_gradients" else \
        3 - (keep > 0) if case["op"] == "conv_step" else 1
    if order.count("G") > RUNS * most:
        return f"{order.count('G')} groups of messages in {RUNS} runs"
    # Each call: at most one group of messages, sub-calls, then sums.
    if not re.fullmatch("(G?C+R*|G?R+|G)*", order):
        return f"messages, parts and sums in the order {order}"
    return None


def marks(runner, cases, setting, after, library, parts=None):
    """Runs the cases of one setting with a preloaded library; `after` has the
    marks of each case, `parts` replaces the cases' own in the whole view.
    Returns the exit status, the log, and for each rank the lines that the
    library wrote."""
    folder, ranks = runner.folder, setting.ranks()
    for rank in range(ranks):
        write_script(os.path.join(folder, str(rank)), cases,
                     rank if runner.view == "shard" else None, after=after)
        if os.path.exists(os.path.join(folder, f"{rank}.seen")):
            os.unlink(os.path.join(folder, f"{rank}.seen"))
    script, memory, out = runner.files("{rank}")
    status, log = runner.run_ranks(
        setting, parts or runner.parts(cases), program=[
            "sh", "-c", f'LD_PRELOAD="$LD_PRELOAD:{library}" WITNESS=$1; '
            'LD_LIBRARY_PATH="$0${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; '
            'shift; export LD_PRELOAD LD_LIBRARY_PATH WITNESS; exec "$@"',
            os.path.join(runner.build, "tests/equivalence/driver"),
            os.path.join(folder, "{rank}.seen"),
            runner.op_case, script, memory, out])
    lines = []
    for rank in range(ranks):
        path = os.path.join(folder, f"{rank}.seen")
        lines.append(list(open(path)) if os.path.exists(path) else [])
    return status, log, lines


def faults(runner, cases, setting):
    """Returns {case: what is wrong with it} for cases of one setting."""
    status, log, lines = marks(runner, cases, setting, WATCHED, "libwitness.so")
    found = {}
    for rank, seen in enumerate(lines):
        if len(seen) != 2 * len(cases) or status != 0:
            return {len(cases) - 1: f"exit status {status}, {len(seen)} marks "
                    f"of {len(cases)} cases on rank {rank}\n{log}"}
        for number, case in enumerate(cases):
            what = wrong(case, runner.view, *seen[2 * number:2 * number + 2])
            if what:
                found[number] = f"rank {rank}: {what}"
    return found


def is_steady(runner, case):
    """Returns whether repeated calls of the case need no agreement. Some do:
    products of matrices in the shard view, because they have no descriptors;
    dropout, because op_case sets its descriptor at every run; all calls with
    `check`; and in the whole view calls of which some ranks compute nothing
    (few keys, or few rows of a sampler's result), because these must learn
    whether the others were refused."""
    if re.match("mat|dropout", case["op"]) or case.get("check") or \
            case.get("bold") or not runner.is_split(case):
        return False
    ranks = int(np.prod(case["mesh"]))
    return runner.view == "shard" or (
        case["op"] != "network" and
        all(b - a > 4 for first in case["part"].values()
            for a, b in zip(first, first[1:])) and
        all(case.get(key, ranks) >= ranks for key in ("seq", "keys")) and
        (not case["op"].startswith("sampler") or min(case["to"]) >= ranks))


def run_steady(runner, options, draw_batch):
    end = time.time() + options.seconds
    count = failed = batch = 0
    while time.time() < end and failed < 5:
        rng = random.Random(f"{options.seed}/steady/{batch}")
        runner.view = options.view or rng.choice(["shard", "whole"])
        cases = [case for case in draw_batch(rng, runner.view, options)
                 if is_steady(runner, case)]
        batch += 1
        cases = runner.accepted(cases)
        if not cases:
            continue
        setting = Setting.of(cases[0], runner.view)
        for number, what in faults(runner, cases, setting).items():
            failed += 1
            print(f"FAILED: batch {batch - 1}, case {number}: {what}\n  " +
                  line_of(cases[number]), flush=True)
        count += len(cases)
    print(f"{count} random cases in {batch} starts (seed {options.seed}) seen "
          f"in their steady state, {failed} failed")
    return failed
