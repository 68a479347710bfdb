# SPDX-License-Identifier: Apache-2.0
"""Runs cases: writes the input of op_case, starts op_case on one rank and on
several, and compares the results."""
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import tempfile

from rank_lines import rank_lines
from cases import COSTS, PRODUCT, Setting, line_of
from check import Wrong, check_case, values_of
from families import family_of
from tensors import decode, encode


def write_script(stem, cases, rank=None, runs=1, after=""):
    """Writes the script and the memory of a rank with its piece of each case,
    or with whole tensors if there is no rank. runs: how often the last case
    runs. after: lines to write after each case."""
    with open(stem + ".script", "w") as script, \
            open(stem + ".memory", "wb") as memory:
        for case in cases:
            write_case(case, rank, script, memory)
            script.write(after)
        script.write("run\n" * (runs - 1))


class Local(dict):
    """Extents of each tensor on a rank. first: where the rank's piece
    begins."""

    def __init__(self):
        super().__init__()
        self.first = {}


def write_case(case, rank, script, memory):
    x = lambda numbers: "x".join(map(str, numbers))
    setting = Setting.of(case, "shard")
    tensors, values = values_of(case)
    spread, local = [], Local()
    print("case", file=script)
    for t in tensors:
        t.rank = rank or 0
        box = t.box(setting, rank)
        extent = local[t.name] = [s.stop - s.start for s in box]
        local.first[t.name] = [s.start for s in box]
        stride, _ = t.strides(extent)
        if t.at:
            print("alias", t.name, t.type, x(extent), x(stride), t.at,
                  file=script)
            continue
        if 0 in extent and t.kind != "memory":
            held = [max(1, n) for n in extent]
            print("empty", t.name, t.type, x(held), x(t.strides(held)[0]),
                  file=script)
            continue
        piece = t.piece(values[t.name], setting, rank)
        half = decode(encode(piece / 2, t.type), t.type)
        if 0 < t.spread <= case.get("spread", 0) and (half * 2 == piece).all():
            spread.append(t.name)
            piece = half
        data = t.image(piece).tobytes()
        if case.get("short") == t.name:
            data = data[:len(data) // 2]
        if t.kind == "memory":
            print("memory", t.name, len(data), file=script)
        elif t.kind == "sequence":
            print("sequence", t.name, t.type,
                  x(t.dims.index(dim) for dim in t.order), x(extent),
                  len(data), x(t.length(box)) if t.lengths else "",
                  file=script)
        elif t.packed() or t.kind == "filter":
            kind = "filter" if t.kind == "filter" else "packed"
            print(kind, t.name, t.type, t.packed(), x(extent), len(data),
                  file=script)
        else:
            print("tensor", t.name, t.type, x(extent), x(stride), len(data),
                  file=script)
        memory.write(data)
    for name in spread:
        print("spread", name, file=script)
    for t in tensors if rank is not None else ():
        if t.tag and t.kind in ("tensor", "sequence"):
            print("range" if t.graph else "tag", t.name, t.tag, file=script)
    for line in family_of(case).calls(case, local):
        print("call", line, file=script)
    written = [t.at or t.name for t in tensors
               if t.out and 0 not in local[t.name]]
    print("run\nwrite", file=script)
    for _ in range(case.get("repeat", 1) - 1):
        for name in written:
            print("reset", name, file=script)
            if name in spread:
                print("spread", name, file=script)
        print("run\nwrite", file=script)


class Runner:
    def __init__(self, build, device, view, verbose):
        self.build = os.path.abspath(build)
        self.device = device
        self.view = view
        self.verbose = verbose
        self.refusals = 0  # number of `bold` cases that sundog refused
        self.folder = tempfile.mkdtemp(prefix="sundog-equivalence-")
        self.op_case = os.path.join(self.build, "tests/equivalence/driver/op_case")
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith("SUNDOG_")}
        self.env.setdefault("OMP_NUM_THREADS", "1")
        # The host device fills new memory with other values than zeros.
        self.env["SUNDOG_HOST_POISON"] = "yes"
        self.model = "hopper"
        self.refused_alone = 0

    def set_model(self, model):
        """Sets which calls the host device refuses (SUNDOG_HOST_MODEL)."""
        self.model = self.env["SUNDOG_HOST_MODEL"] = model

    def preloads(self, cases):
        return any(family_of(case).preload for case in cases)

    def accepted(self, cases):
        """Returns the cases that one device accepts: a GPU, or the host device
        under the model."""
        if (self.device == "host" and self.model == "any") or not cases:
            return cases
        write_script(os.path.join(self.folder, "whole"), cases)
        setting = Setting.of(cases[0], self.view)
        if setting.wrap:  # only sundog computes it, also on one rank
            log = self.run_ranks(setting.alone(), program=[
                self.op_case, *self.files("whole"), "refusals"])[1]
        else:
            log = self.run_alone(preload=self.preloads(cases),
                                 refusals=True)[1]
        refused = {int(number) for number in
                   re.findall(r"^(?:sundog: .*)?refused (\d+)$", log, re.M)}
        self.refused_alone += len(refused)
        return [case for number, case in enumerate(cases)
                if number not in refused]

    def close(self):
        shutil.rmtree(self.folder)

    def start(self, command, env, timeout):
        """Runs a command in its own session; returns (status, output)."""
        if self.verbose:
            print("+", shlex.join(command), flush=True)
        with open(os.path.join(self.folder, "log"), "w+") as log:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                     stdout=log, stderr=log, cwd=self.folder,
                                     env=env, start_new_session=True)
            ended = os.pidfd_open(child.pid)
            try:
                # wait(timeout) would poll at intervals.
                if select.select([ended], [], [], timeout)[0]:
                    status = child.wait()
                else:
                    status = "no end within %d s" % timeout
            finally:
                os.close(ended)
                # Ends all processes that are left of the session.
                try:
                    os.killpg(child.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                child.wait()
            log.seek(0)
            return status, rank_lines(log.read())

    def files(self, name):
        stem = os.path.join(self.folder, name)
        return [stem + ".script", stem + ".memory", stem + ".out"]

    def run_alone(self, name="whole", preload=False, refusals=False):
        """Runs op_case without `sundog run`. refusals: continues after calls
        that the device refuses, and prints the numbers of their cases."""
        env = dict(self.env)
        folders = []
        if self.device == "host":
            folders.append(os.path.join(self.build, "src/host/lib"))
        if preload:
            # Only the name: the linker splits LD_PRELOAD at blanks in a path.
            env["LD_PRELOAD"] = "libsundog.so"
            folders.append(os.path.join(self.build, "interpose"))
        if folders:
            env["LD_LIBRARY_PATH"] = ":".join(
                filter(None, [*folders, env.get("LD_LIBRARY_PATH")]))
        return self.start([self.op_case, *self.files(str(name)),
                           *(["refusals"] if refusals else [])], env, 120)

    def run_ranks(self, setting, parts="", timeout=120, program=None,
                  extra=None):
        env = dict(self.env, SUNDOG_STRATEGY=setting.strategy, **(extra or {}))
        if setting.check:
            env["SUNDOG_CHECK"] = "yes"
        if setting.cost:
            env["SUNDOG_COST"] = COSTS[setting.cost]
        if setting.view == "whole":
            env["SUNDOG_PARTS"] = parts
        script, memory, out = self.files("whole")
        program = program or [
            self.op_case, *([script, memory] if setting.view == "whole" else
                           self.files("{rank}")[:2]), self.files("{rank}")[2]]
        return self.start(
            [os.path.join(self.build, "tools/sundog"), "run", "--device",
             self.device, *setting.options(os.path.join(self.folder, "rules")),
             "--", *program], env, timeout)

    def parts(self, cases):
        """Returns SUNDOG_PARTS for the whole view: the sizes of the pieces, or
        "even" if several cases or tensors have other extents."""
        case = cases[0]
        if len(cases) > 1 or case.get("spread") == 2:
            return "even"
        return " ".join(
            f"{PRODUCT.get(dim, dim)}:" + ",".join(str(b - a) for a, b in zip(first, first[1:]))
            for dim, first in case["part"].items())

    def is_split(self, case):
        """Returns whether several ranks can carry out the case's op."""
        return self.view == "whole" or case["op"] in family_of(case).sharded

    def refused(self, ranks, status, log):
        """Returns whether the call ended in a coded error, and no rank wrote
        results."""
        sizes = [os.path.getsize(self.files(str(rank))[2])
                 for rank in range(ranks)
                 if os.path.exists(self.files(str(rank))[2])]
        told = re.findall(r"^op_case: told '(.*)", log, re.M)
        return status not in (0, None) and told and all(
            re.match(r"SDG-\d\d\d ", text) for text in told) and \
            all(size <= 4 for size in sizes)

    def faults(self, cases, apart=False):
        """Runs cases of one setting; returns {number: what is wrong}. apart:
        each rank runs by itself, without sundog."""
        setting = Setting.of(cases[0], self.view)
        ranks = setting.ranks() if self.is_split(cases[0]) else 0
        names = ["whole", *map(str, range(ranks))]
        for name in names:
            if os.path.exists(self.files(name)[2]):
                os.unlink(self.files(name)[2])
        write_script(os.path.join(self.folder, "whole"), cases)
        if setting.wrap:  # only sundog computes it, also on one rank
            alone, log = self.run_ranks(setting.alone(), program=[
                self.op_case, *self.files("whole")])
        else:
            alone, log = self.run_alone(preload=self.preloads(cases))
        status = 0
        if ranks:
            if self.view == "shard":
                for rank in range(ranks):
                    write_script(os.path.join(self.folder, str(rank)), cases,
                                 rank)
            if apart:
                status, split_log = max(self.run_alone(rank)
                                        for rank in range(ranks))
            else:
                status, split_log = self.run_ranks(setting, self.parts(cases))
            log = log if alone != 0 else split_log
        # With a periodic dimension sundog computes on one rank, too, and may
        # refuse the case there.
        if (alone == 0 or setting.wrap) and cases[0].get("bold") and \
                self.refused(ranks, status, log):
            self.refusals += 1
            return {}
        # If every rank made the calls by itself, the run fails with SDG-717,
        # but the results must be right.
        if cases[0].get("bold") and status not in (0, None) and \
                set(re.findall(r"SDG-\d+", log)) == {"SDG-717"}:
            status = 0
        exact = self.device == "host"
        outs = [open(self.files(name)[2], "a+b") for name in names]
        found = {}
        for number, case in enumerate(cases):
            if number == 0:
                for out in outs:
                    out.seek(0)
            try:
                check_case(case, setting, outs[0], outs[1:], exact)
            except Wrong as wrong:
                # It is unknown where the results of later cases begin.
                found[number] = str(wrong)
                break
        for out in outs:
            out.close()
        if not found and (alone != 0 or status != 0):
            found[len(cases) - 1] = f"exit status {alone} alone, {status} split"
        for number in found:
            found[number] += "".join("\n    " + text
                                     for text in log.splitlines()[-12:])
        return found


def repeat_line(runner, case):
    """Returns the command that runs this case again."""
    return " ".join(
        ["tests/equivalence/driver/run",
         *(["--device", runner.device] if runner.device != "host" else []),
         *(["--view", runner.view] if runner.view != "shard" else []),
         *(["--model", runner.model] if runner.model != "hopper" else []),
         "--case", shlex.quote(line_of(case))])
