# SPDX-License-Identifier: Apache-2.0
"""The stages of tests/gpu/run: what each one starts, and which lines of its
output are kept.

A stage gets a Job and the seconds it may take, and returns lines to keep. It
raises Failed if something is wrong, Skipped if this machine cannot run it.
"""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
EQUIVALENCE = os.path.join(ROOT, "tests/equivalence/driver/run")
CLIENTS = os.path.join(ROOT, "tests/clients")
STAGES = []


class Failed(Exception):
    """Says what is wrong; `lines` are kept nevertheless."""

    def __init__(self, what, lines=()):
        super().__init__(what)
        self.lines = list(lines)


class Late(Failed):
    """The stage had too little time."""


class Skipped(Exception):
    """Says why the stage did not run."""


def stage(seconds, about, name=None, asked=True):
    """seconds: the stage's share of the time. asked: it also runs if the
    command names no stage."""
    def add(function):
        STAGES.append((name or function.__name__, seconds, about, asked,
                       function))
        return function
    return add


class Job:
    """The machine and folder of a stage; commands append their output to
    `log`."""

    def __init__(self, machine, ranks, seed, log):
        self.machine, self.ranks, self.seed, self.log = (machine, ranks, seed,
                                                         log)
        self.device, self.build, self.sundog = (machine.device, machine.build,
                                                machine.sundog)

    def built(self, path):
        return os.path.join(self.build, path)

    def run(self, words, seconds, env=None):
        """Runs a command; returns its exit status (None if it took too long)
        and its output."""
        env = {**self.machine.env, **(env or {})}
        begin = os.path.getsize(self.log) if os.path.exists(self.log) else 0
        with open(self.log, "ab") as log:
            log.write(("+ " + " ".join(words) + "\n").encode())
            log.flush()
            begin = log.tell()
            child = subprocess.Popen(words, stdin=subprocess.DEVNULL, env=env,
                                     stdout=log, stderr=log,
                                     start_new_session=True)
            status = wait(child, seconds)
        with open(self.log, errors="replace") as log:
            log.seek(begin)
            return status, log.read()

    def must(self, words, seconds, env=None):
        """Returns the output of a command that must not fail."""
        status, said = self.run(words, seconds, env)
        if status != 0:
            raise (Late if status is None else Failed)(
                f"{os.path.basename(words[0])} " + ended(status, seconds),
                tail(said))
        return said


def ended(status, seconds):
    return (f"did not end within {seconds:.0f} s" if status is None else
            f"ended with status {status}")


def wait(child, seconds):
    """Waits for a child that leads a session, and ends the whole session."""
    status = None
    with contextlib.suppress(subprocess.TimeoutExpired):
        status = child.wait(seconds)
    for number, grace in ((signal.SIGTERM, 8), (signal.SIGKILL, 8)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(grace)
            if status is not None:
                break
    return status


def tail(said, lines=12):
    return [line[:240] for line in said.splitlines()[-lines:]]


def kept(said, pattern):
    return [line.strip()[:240] for line in said.splitlines()
            if re.search(pattern, line)]


@stage(4, "where the driver's library is, shared memory, loopback, MPS")
def place(job, seconds):
    cache = job.run(["/sbin/ldconfig", "-p"], seconds)[1]
    driver = kept(cache, r"libcuda\.so\.1") or ["not in the linker's cache"]
    shared = os.statvfs("/dev/shm") if os.path.isdir("/dev/shm") else None
    up = 0
    with contextlib.suppress(OSError):
        up = int(open("/sys/class/net/lo/flags").read(), 16) & 1
    return [f"libcuda.so.1: {driver[0]}",
            "LD_LIBRARY_PATH: " + (os.environ.get("LD_LIBRARY_PATH") or "-"),
            "/dev/shm: " + (f"{shared.f_bavail * shared.f_frsize >> 20} MiB free"
                            if shared else "missing"),
            "loopback: " + ("up" if up else "down"),
            "MPS: " + ("daemon installed" if shutil.which(
                "nvidia-cuda-mps-control") else "not installed"),
            f"processors: {os.cpu_count()}"]


@stage(8, "what `sundog doctor` finds")
def doctor(job, seconds):
    said = job.must([job.sundog, "doctor", "--", job.built(
        "tests/equivalence/driver/op_case")], seconds)
    return kept(said, r"^(warn|fail|ok +(device|driver|CUDA|cuDNN|NCCL))|fail$")


@stage(30, "preloaded where nothing was asked for, it changes nothing")
def preload(job, seconds):
    end, lines = time.time() + seconds, []
    library = {"LD_PRELOAD": job.built("interpose/libsundog.so")}
    scene = os.path.dirname(job.log)
    job.must([job.built("tests/clients/scene"),
              os.path.join(CLIENTS, "bathymetry.npy"), "91", "120", scene], 60)
    solver = [job.built("tests/clients/shallow"),
              "--in", scene + "/level.npy", "--depth", scene + "/depth.npy",
              "--order", "4", "--steps", "50", "--dx", "2400", "--dt", "15",
              "--friction", "0.0005"]
    for name, words in (("/bin/true", ["/bin/true"]), ("a shell", [
            "/bin/sh", "-c", "echo there"]), ("a solver", solver)):
        said, files, took = [], [], []
        for env in ({}, library):
            out = f"{scene}/out-{len(said)}.npy"
            more = ["--out", out] if words is solver else []
            begin = time.time()
            said.append(job.must(words + more, end - time.time(), env))
            took.append(time.time() - begin)
            files.append(open(out, "rb").read() if more else b"")
        if said[0] != said[1] or files[0] != files[1]:
            raise Failed(f"{name} is another with sundog preloaded", said)
        lines.append(f"{name}: the same, {took[0]:.2f} s and {took[1]:.2f} s")
    return lines


def probe(job, name, seconds, *words):
    status, said = job.run([job.built("tests/gpu/probe_" + name), *words],
                           seconds)
    if status != 0:
        raise (Late if status is None else Failed)(
            f"probe_{name} " + ended(status, seconds), tail(said, 40))
    return tail(said, 60)


@stage(12, "what multi-head attention does where its documentation is silent")
def attention(job, seconds):
    return probe(job, "attention", seconds)


@stage(12, "which tensors inside larger ones cuDNN takes")
def views(job, seconds):
    return probe(job, "views", seconds)


def size(job):
    """Of the probes' convolution: edge and channels. The host device would take
    minutes for one that fills a GPU."""
    return ("32", "4") if job.device == "host" else ("1024", "64")


@stage(25, "times of whole tensors, ranges of rows, strips, unaligned ones")
def pieces(job, seconds):
    return probe(job, "pieces", seconds, *size(job))


@stage(20, "messages and copies beside a convolution; copies of columns")
def overlap(job, seconds):
    return probe(job, "overlap", seconds, *size(job))


@stage(40, "NCCL alone: two kinds of communicators, ranks that share a GPU")
def nccl(job, seconds):
    lines, end = [], time.time() + seconds
    for ranks in job.ranks:
        meet = os.path.join(os.path.dirname(job.log), f"nccl-{ranks}")
        gpus = job.machine.gpus
        words = " & ".join(
            f"{share(job, rank, ranks)} '{job.built('tests/gpu/probe_comm')}' "
            f"{rank} {ranks} '{meet}' & pids=\"$pids $!\""
            for rank in range(ranks)).replace("& &", "&")
        said = job.must(["bash", "-c", f"{words}; bad=0; for p in $pids; do "
                         "wait $p || bad=1; done; exit $bad"],
                        end - time.time())
        shared = " sharing" if ranks > len(gpus) else ""
        lines += [f"{ranks} ranks{shared}: {line}" for line in tail(said)]
    return lines


def share(job, rank, ranks):
    """Returns the words before the program of a rank without `sundog run`. They
    do what `sharing` does."""
    gpus = job.machine.gpus
    words = f"env CUDA_VISIBLE_DEVICES={gpus[rank % len(gpus)]}"
    if ranks > len(gpus):
        words += (f" NCCL_HOSTID={rank} NCCL_SOCKET_IFNAME=lo "
                  "NCCL_IB_DISABLE=1")
    return words


def equivalence(job, seconds, *words):
    """Runs the equivalence tester once. It may exceed its time to finish a
    started case."""
    said = job.must([sys.executable, EQUIVALENCE, "--build", job.build,
                     "--device", job.device, "--shrink-seconds", "20", *words],
                    seconds)
    return kept(said, r" cases in \d+ starts|^FAILED|repeat:")


@stage(110, "rows of the equivalence tester that have a name")
def named(job, seconds):
    return equivalence(job, seconds, "--named", "--limit",
                       str(int(0.45 * seconds)), "--seed", job.seed, "--ranks",
                       ",".join(map(str, job.ranks)))


@stage(110, "its random cases, by the number of ranks")
def random(job, seconds):
    lines, share_of = [], seconds / len(job.ranks)
    for ranks in job.ranks:
        lines += [f"{ranks} ranks: {line}" for line in equivalence(
            job, share_of, "--seconds", str(int(0.6 * share_of)), "--ranks",
            str(ranks), "--seed", job.seed)]
    return lines


@stage(40, "random cases once they are planned: no memory, no agreement")
def steady(job, seconds):
    if not os.path.exists(job.built("tests/equivalence/driver/libwitness.so")):
        raise Skipped("no libwitness.so in this build")
    return equivalence(job, seconds, "--steady", "--seconds",
                       str(int(0.6 * seconds)), "--seed", job.seed, "--ranks",
                       ",".join(map(str, job.ranks)))


@stage(50, "graphs of cuDNN's backend API in halves, in both views")
def graphs(job, seconds):
    end, lines = time.time() + seconds, []
    for main, split, dimension in (
            ("conv", "H", "H"), ("conv", "H; strategy = repair", "H"),
            ("pool", "H", "H"), ("pointwise", "H", "H"),
            ("product", "M; op = matmul", "M")):
        for ranks in job.ranks:
            for view in ("shard", "whole"):
                if "repair" in split and view == "whole":
                    continue
                # Its status tells whether cuDNN took most of the graphs.
                _, said = job.run(
                    [job.sundog, "run", "-n", str(ranks), "--device",
                     job.device, "--view", view, "--split", split,
                     "--piece-values", "local", "--timeout", "60", "--",
                     job.built("tests/clients/graph_random"), dimension,
                     str(job.seed), "10", "hopper", "half", main],
                    end - time.time(), {"LAYER_VIEW": view})
                counts = sorted(set(kept(said, "graphs are right")))
                lines += [f"{main}, split {split}, {ranks} ranks, view {view}: "
                          f"{line}" for line in counts]
                wrong = kept(said, r"wrong|SDG-(?!716)")
                if wrong or not counts:
                    raise Failed(f"{main}, {ranks} ranks, view {view}",
                                 lines + (wrong or tail(said)))
    return lines


@stage(45, "graphs of attention in halves, in pieces of sequences and of heads")
def sequences(job, seconds):
    end, lines = time.time() + seconds, []
    for view, split, letter in (("shard", "SEQ; strategy = halo", "S"),
                                ("shard", "SEQ; strategy = ring", "S"),
                                ("shard", "SEQ; strategy = heads", "S"),
                                ("shard", "HEADS", "H"), ("whole", "SEQ", "S"),
                                ("whole", "HEADS", "H")):
        for ranks in job.ranks:
            if view == "shard" and letter == "H" and ranks > 2:
                continue  # fewer heads than that
            _, said = job.run(
                [job.sundog, "run", "-n", str(ranks), "--device", job.device,
                 "--view", view, "--split", split + "; op = attention",
                 "--piece-values", "local", "--timeout", "60", "--",
                 job.built("tests/clients/graph_attention"), letter,
                 str(job.seed), "10", "hopper", "half", "split"],
                end - time.time(), {"LAYER_VIEW": view})
            counts = sorted(set(kept(said, "are right, ")))
            lines += [f"split {split}, {ranks} ranks, view {view}: {line}"
                      for line in counts]
            wrong = kept(said, r", [1-9]\d* wrong|SDG-(?!716)")
            if wrong or not counts:
                raise Failed(f"{split}, {ranks} ranks, view {view}",
                             lines + (wrong or tail(said)))
    return lines


@stage(60, "what must be refused, in time and in words", asked=False)
def refused(job, seconds):
    said = job.must([sys.executable, EQUIVALENCE, "--build", job.build,
                     "--device", job.device, "--negative"], seconds)
    return kept(said, "FAILED|cases that must")


def losses(job, seconds, client):
    """Compares the losses of training on several ranks with those of one
    rank."""
    spread = {} if job.device == "host" else {"SPREAD": "yes"}
    said = job.must([os.path.join(CLIENTS, "nets/check"), job.build, client],
                    seconds, spread)
    return kept(said, "^== |off by at most|bound of the losses")


for client, share_s, always in (("simplecnn", 60, True), ("linear", 30, True),
                                ("processor", 60, False),
                                ("batches", 40, False), ("unet_2d", 120, False),
                                ("unet_3d", 120, False)):
    stage(share_s, f"losses of {client}, on several ranks and on one",
          "client_" + client, always)(
              lambda job, seconds, client=client: losses(job, seconds, client))


@stage(60, "the wave solver, in pieces and whole", "client_shallow")
def shallow(job, seconds):
    end, lines = time.time() + seconds, []
    exact = {} if job.device == "host" else {"SAME": "1e-4"}
    for how in ("alone", "apart", "together", "whole"):
        said = job.must([os.path.join(CLIENTS, "check"), job.build, how],
                        end - time.time(), exact)
        lines.append(f"{how}: {len(kept(said, '^== ')) or 1} runs agree")
    return lines


def bench(job, seconds, *words):
    status, said = job.run([sys.executable, os.path.join(ROOT, "tools/bench"),
                            *words], seconds, {"SUNDOG_BUILD": job.build})
    if status != 0:
        raise (Late if status is None else Failed)(
            f"tools/bench {' '.join(words)} " + ended(status, seconds),
            tail(said, 30))
    return said.splitlines()


@stage(30, "`tools/bench pass`", "bench_pass")
def bench_pass(job, seconds):
    return bench(job, seconds, "pass")


@stage(110, "`tools/bench scale`, once each; ranks that share a GPU gain "
       "nothing", "bench_scale")
def bench_scale(job, seconds):
    return bench(job, seconds, "scale", "1")


@stage(60, "PyTorch: preloaded, and convolutions in pieces")
def torch(job, seconds):
    if "torch" not in job.machine.facts:
        raise Skipped("there is no PyTorch for python3 here")
    # PyTorch uses its own libraries, not those of the tests.
    env = {"LD_LIBRARY_PATH": ":".join(
        [os.path.join(job.machine.real, "lib"),
         *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])}
    end, lines = time.time() + seconds, []
    program = ["python3", os.path.join(HERE, "torch_check.py")]
    said = [job.must([*program, "digest"], end - time.time(), more) for more in
            (env, {**env, "LD_PRELOAD": job.built("interpose/libsundog.so")})]
    lines += [f"alone {said[0].strip()}", f"preloaded {said[1].strip()}"]
    if said[0] != said[1]:
        raise Failed("PyTorch is another with sundog preloaded", lines)
    for ranks in job.ranks[1:2]:
        run = [job.sundog, "run", "-n", str(ranks), "--view", "shard",
               "--split", "H", "--timeout", "60", "--", *program]
        # These functions never call cuDNN, so no tensor matches.
        _, text = job.run([*run, "ops", "{rank}", "{size}"],
                          end - time.time(), env)
        lines += sorted(set(kept(text, "^op ")))
        _, text = job.run([*run, "legacy", "{rank}", "{size}", "timeline"],
                          end - time.time(), env)
        lines += kept(text, "^time ")
        for api in ("legacy", "graph"):
            status, text = job.run(
                [*run, api, "{rank}", "{size}"], end - time.time(), env)
            codes = sorted(set(re.findall(r"SDG-\d\d\d", text)))
            lines += [f"{api} API, {ranks} ranks: status {status} "
                      + " ".join(codes),
                      *kept(text, "^rank|SDG-|wrong")[:8]]
            # Results must be right or refused.
            if "wrong" in text or (status != 0 and not codes):
                raise Failed(f"PyTorch by its {api} API", lines)
    return lines


@stage(60, "the host device's own tests on NVIDIA's libraries: where it is "
       "another", asked=False)
def vendor(job, seconds):
    if job.device == "host":
        raise Skipped("these are the host device's")
    end, lines = time.time() + seconds, []
    folder = job.built("tests/host")
    programs = sorted(os.path.join(at, name) for at, _, names in
                      os.walk(os.path.realpath(folder)) for name in names
                      if re.fullmatch(r"test_\w+", name))
    if not programs:
        raise Skipped("no tests/host in this build")
    for path in programs:
        if not os.path.isfile(path) or time.time() > end:
            continue
        status, said = job.run([path], max(1, min(60, end - time.time())))
        good = len(kept(said, r"^ok "))
        bad = [line for line in kept(said, r"^not ok ")]
        lines += [f"{os.path.basename(path)}: {good} as on the host device, "
                  f"{len(bad)} not, status {status}", *bad[:4]]
    return lines
