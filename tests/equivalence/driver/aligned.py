# SPDX-License-Identifier: Apache-2.0
"""Looks for tensor cores that a sub-call loses. Given a pointer that is no
multiple of 16 bytes, a vendor's library takes an engine without them, or with
shorter loads, and says nothing. All pointers of op_case itself are multiples,
so whatever is none comes from sundog: a part in place, or a place in scratch."""
import random
import re
import time

from cases import Setting, line_of
from families import family_of
from steady import marks

# Functions with tensor cores, and their tensors. The others only load slower.
CORES = re.compile(r"(cudnnConvolution(Forward|BiasActivationForward|"
                   r"BackwardData|BackwardFilter)|cudnnMultiHeadAttn\w+|"
                   r"cublas\w*(gemm|Gemm|Matmul)\w*)\.(?!alpha|beta|devSeq)")
# Cases that may lose them, and why.
ALLOWED = [
    (lambda case: case["type"] == "double", "no engine uses them for double"),
    (lambda case: case.get("strategy") in ("repair", "adjoint"),
     "who asks for a strategy gets it"),
    (lambda case: any(key.startswith("at_") for key in case),
     "the rule cuts a matrix otherwise than the product, evenly"),
    (lambda case: case.get("bold"), "sundog may refuse it"),
]
# Extend costs most, so that `auto` computes in place wherever it may.
IN_PLACE = 2


def prepared(case):
    """Makes vectors of attention, lines of matrices and cuts of products
    multiples of 16 bytes. Where they are none, one device's lines are none,
    either, or the rule cuts between multiples. Results of products are large
    enough for each rank to get 16 bytes of each line."""
    case["cost"] = IN_PLACE
    for key in ("sizes", "projected"):
        if case["op"] == "attention" and key in case:
            case[key] = [8 * size for size in case[key]]
    if is_product(case):
        times = dict(zip("mnkb", (64, 64, 8, 1)))
        case["size"] = [size * factor for size, factor in
                        zip(case["size"], times.values())]
        case["gap"], case["gapc"] = 8 * case["gap"], 8 * case["gapc"]
        case["part"] = {dim: [times[dim] * first for first in firsts]
                        for dim, firsts in case["part"].items()}
    return case


def is_product(case):
    return case["op"].startswith("mat")


def losses(runner, cases, setting):
    """Yields what a rank of the cases' ranks loses, and by which case."""
    status, log, lines = marks(
        runner, cases, setting, "watch case\n", "libalignment.so",
        "even/8" if is_product(cases[0]) else None)
    for rank, told in enumerate(lines):
        if status != 0 or len(told) != len(cases):
            yield f"exit status {status}, {len(told)} marks of {len(cases)} " \
                f"cases on rank {rank}\n{log}", cases[-1]
            return
        for case, line in zip(cases, told):
            lost = [word for word in line.split()[1:] if CORES.match(word)]
            if lost:
                yield f"rank {rank}, view {runner.view}, no multiples of 16 " \
                    f"bytes: {' '.join(lost)}", case


def run_aligned(runner, options, draw_batch):
    end = time.time() + options.seconds
    count = batch = failed = 0
    while time.time() < end and failed < 5:
        rng = random.Random(f"{options.seed}/aligned/{batch}")
        runner.view = options.view or rng.choice(["shard", "whole"])
        cases = [prepared(case) for case in
                 draw_batch(rng, runner.view, options)
                 if runner.is_split(case) and
                 not any(allowed(case) for allowed, why in ALLOWED)]
        batch += 1
        setting = cases and Setting.of(cases[0], runner.view)
        cases = runner.accepted([case for case in cases if
                                 family_of(case).valid(case, setting)])
        for what, case in losses(runner, cases, setting) if cases else ():
            failed += 1
            print(f"FAILED: {what}\n  {line_of(case)}", flush=True)
        count += len(cases)
    print(f"{count} random cases in {batch} starts (seed {options.seed}), "
          f"{failed} lose tensor cores")
    return failed + (count == 0)
