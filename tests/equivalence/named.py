# SPDX-License-Identifier: Apache-2.0
"""Cases with a name: those that other systems get wrong, the corners of the
geometry, and what must be refused.

A line is as in cases.py; families say what is left out.
"""
import os

from runner import write_script


def cut(total, pieces, uneven=True):
    """Boundaries of about equal pieces, the inner ones pushed about."""
    push = (0, 1, -1, 2, -2, 1, -1)
    first = [total * i // pieces for i in range(pieces + 1)]
    if uneven:
        for i in range(1, pieces):
            first[i] += push[i % len(push)]
    return ",".join(map(str, first))


def square(size, k, s, p, pieces, channels="n=1 c=3 k=2", d=1, uneven=True):
    """A 2-D convolution on rows split over `pieces`."""
    return (f"mesh={pieces} split=H:0 partH={cut(size, pieces, uneven)} "
            f"size={size}x{size} kernel={k}x{k} stride={s}x{s} "
            f"dilation={d}x{d} pad={p}x{p} {channels}")


def line(size, k, s, p, pieces, channels="n=2 c=16 k=8"):
    """A 1-D convolution: W is 1."""
    return (f"mesh={pieces} split=H:0 partH={cut(size, pieces)} size={size}x1 "
            f"kernel={k}x1 stride={s}x1 dilation=1x1 pad={p}x0 {channels}")


def mesh2d(size, k, s, p, channels="n=2 c=16 k=8"):
    return (f"mesh=2x2 split=H:0,W:1 partH={cut(size, 2)} "
            f"partW={cut(size, 2)} size={size}x{size} kernel={k}x{k} "
            f"stride={s}x{s} dilation=1x1 pad={p}x{p} {channels}")


def cube(size, k, s, p, channels="n=2 c=4 k=4"):
    return (f"mesh=2x2 split=D:0,H:1 partD={cut(size, 2)} "
            f"partH={cut(size, 2)} size={size}x{size}x{size} "
            f"kernel={k}x{k}x{k} stride={s}x{s}x{s} dilation=1x1x1 "
            f"pad={p}x{p}x{p} {channels}")


PARAMETERS = [("k3s1p0", 3, 1, 0), ("k3s1p1", 3, 1, 1), ("k2s2p0", 2, 2, 0),
              ("k2s1p0", 2, 1, 0), ("k2s2p1", 2, 2, 1), ("k3s2p0", 3, 2, 0),
              ("k3s2p1", 3, 2, 1)]
STRIDED = [("k3s2p1", 3, 2, 1), ("k5s2p2", 5, 2, 2), ("k7s2p3", 7, 2, 3),
           ("k7s4p3", 7, 4, 3), ("k3s2p0", 3, 2, 0), ("k3s3p1", 3, 3, 1),
           ("k1s2p0", 1, 2, 0), ("k1s1p1", 1, 1, 1)]

NAMED = [("k3s2p1 of 258 rows on 2 ranks gives 129",
          square(258, 3, 2, 1, 2, "n=1 c=1 k=1", uneven=False))]
NAMED += [(f"conv1d {n}, {size}", line(size, k, s, p, 3))
          for n, k, s, p in PARAMETERS for size in (32, 256)]
NAMED += [(f"conv2d {n}, rows", square(32, k, s, p, 4, "n=2 c=16 k=8"))
          for n, k, s, p in PARAMETERS]
NAMED += [(f"conv2d {n}, rows and columns", mesh2d(32, k, s, p))
          for n, k, s, p in PARAMETERS]
NAMED += [(f"conv3d {n}, planes and rows", cube(16, k, s, p))
          for n, k, s, p in PARAMETERS]
NAMED += [(f"{n}, {size} rows on {ranks}", square(size, k, s, p, ranks))
          for n, k, s, p in STRIDED
          for size, ranks in ((16, 2), (19, 3), (24, 4))]
NAMED += [
    ("a halo over three neighbours",
     "mesh=6 split=H:0 partH=0,5,6,7,8,9,14 size=14x9 kernel=5x3 stride=1x1 "
     "dilation=2x1 pad=4x1 n=1 c=2 k=2"),
    ("a kernel of one needs no halo", square(12, 1, 1, 0, 3)),
    ("dilation 3", square(30, 3, 1, 3, 3, d=3)),
    ("a depthwise convolution", square(20, 3, 1, 1, 3, "n=1 c=6 k=6 groups=6")),
    ("channels last", square(21, 3, 2, 1, 3, "n=2 c=4 k=6 order=NHWC")),
    ("the batch split", "mesh=3 split=N:0 partN=0,1,4,5 size=9x8 kernel=3x3 "
     "stride=1x1 dilation=1x1 pad=1x1 n=5 c=2 k=2"),
    ("batch and rows split", "mesh=2x2 split=N:0,H:1 partN=0,1,3 partH=0,3,9 "
     "size=9x8 kernel=3x3 stride=1x1 dilation=1x1 pad=1x1 n=3 c=2 k=2"),
    ("rows split over two axes", "mesh=2x2 split=H:0+1 partH=0,3,9,11,17 "
     "size=17x8 kernel=3x3 stride=2x1 dilation=1x1 pad=1x1 n=1 c=2 k=2"),
    ("an axis that no split names", "mesh=2x2 split=H:1 partH=0,7,17 "
     "size=17x8 kernel=3x3 stride=1x1 dilation=1x1 pad=1x1 n=1 c=2 k=2"),
    ("three dimensions split", "mesh=2x2x2 split=D:0,H:1,W:2 partD=0,3,9 "
     "partH=0,5,9 partW=0,4,9 size=9x9x9 kernel=3x3x3 stride=1x1x1 "
     "dilation=1x1x1 pad=1x1x1 n=1 c=2 k=2"),
    ("beta adds to what y held",
     square(15, 3, 1, 1, 3, "n=1 c=2 k=2 alpha=-0.5 beta=2")),
    ("bias and activation on y itself",
     square(15, 3, 1, 1, 3, "n=1 c=2 k=2 op=conv_fused act=relu zy=1 beta=0.5")),
    ("lines with gaps between them",
     square(15, 5, 1, 2, 3, "n=2 c=2 k=2 gap=3")),
]


BASE = ("op=conv_forward mesh=2 split=H:0 partH=0,6,12 size=12x8 kernel=3x3 "
        "stride=1x1 dilation=1x1 pad=1x1 n=1 c=2 k=2 groups=1 seed=1")
CODE = r"SDG-\d\d\d"


def negative_cases(runner, completed):
    """What must end with an error that says what is wrong, and in time.

    Each: name, line (for the ranks' setting), program, patterns that the
    output must contain, seconds it may take, environment.
    """
    stem = os.path.join(runner.folder, "negative")
    files = [stem + ".{rank}" + end for end in (".script", ".memory", ".out")]

    def item(name, lines, says, line=BASE, seconds=30, program=None, times=1,
             pieces=range(8)):
        """`lines`: for each rank, those of its cases, so many times; `pieces`:
        whose pieces it has of them."""
        for rank, text in enumerate(lines):
            write_script(f"{stem}.{rank}", [completed(one) for one in text],
                         pieces[rank], times)
        return {"name": name, "line": line, "says": says, "seconds": seconds,
                "program": program or [runner.opcase, *files],
                "env": {"SUNDOG_TIMEOUT": "8"}}

    def but(**changes):
        words = dict(word.split("=", 1) for word in BASE.split())
        words.update({k: str(v) for k, v in changes.items()})
        return " ".join(f"{k}={v}" for k, v in words.items())

    yield item("rank 1 has other columns", [[BASE], [but(size="12x9")]], [CODE])
    yield item("rank 1 has another number of channels",
               [[BASE], [but(c=3)]], [CODE])
    yield item("rank 1 has another kernel", [[BASE], [but(kernel="5x3",
                                                          pad="2x1")]], [CODE])
    yield item("rank 1 has another stride", [[BASE], [but(stride="2x1")]],
               [CODE])
    yield item("rank 1 has another layout", [[BASE], [but(order="NHWC")]], [CODE])
    yield item("rank 1 calls another function", [[BASE], [but(op="conv_fused", act="relu")]],
               [CODE])
    yield item("rank 1 ends one call early", [[BASE, BASE], [BASE]],
               [CODE, "rank 1"])
    sizes = but(size="258x8", partH="0,129,258", stride="2x1", own_sizes=1)
    yield item("output sizes that do not add up: which parts would do",
               [[sizes]] * 2, [CODE, "129"], line=sizes, pieces=[0, 0])
    none = ("mesh=3 split=H:0 partH=0,1,2,3 size=3x4 kernel=3x3 stride=4x1 "
            "dilation=1x1 pad=1x1 n=1 c=1 k=1 groups=1 seed=1")
    yield item("a rank that would own no output", [[none]] * 3, [CODE],
               line=none)
    few = ("mesh=3 split=H:0 partH=0,1,2,2 size=2x4 kernel=3x3 stride=1x1 "
           "dilation=1x1 pad=1x1 n=1 c=1 k=1 groups=1 seed=1")
    yield item("more ranks than rows", [[few]] * 3, ["BAD_PARAM|" + CODE],
               line=few)
    channels = BASE.replace("split=H:0 partH=0,6,12", "split=C:0 partC=0,1,2")
    yield item("channels split", [[channels]] * 2, [CODE], line=channels)
    many = [but(size="1200x600", partH="0,600,1200")]
    run = f"exec %s '{runner.opcase}' " + " ".join(f"'{f}'" for f in files)
    for name, signal, says in (("is killed", "KILL", [r"rank 1\b"]),
                               ("stands still", "STOP", [CODE, r"rank 1\b"])):
        yield item("rank 1 " + name, [many] * 2, says, times=2000, program=[
            "sh", "-c", f"if [ {{rank}} = 1 ]; then "
            f"{run % f'timeout -s {signal} 1.5'}; else {run % ''}; fi"])
