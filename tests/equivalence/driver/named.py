# SPDX-License-Identifier: Apache-2.0
"""Named cases: cases that other systems get wrong, and corner cases of the
geometry.

Each is a name and a line as in cases.py; families complete the line.
"""
from cases import NARROW
from families import FAMILIES


def cut(total, pieces, uneven=True):
    """Returns the boundaries of about equal pieces. uneven: moves the inner
    boundaries by up to 2."""
    push = (0, 1, -1, 2, -2, 1, -1)
    first = [total * i // pieces for i in range(pieces + 1)]
    if uneven:
        for i in range(1, pieces):
            first[i] += push[i % len(push)]
    return ",".join(map(str, first))


def square(size, k, s, p, pieces, channels="n=1 c=3 k=2", d=1, uneven=True):
    """Returns a 2-D convolution whose rows are split into `pieces`."""
    return (f"mesh={pieces} split=H:0 partH={cut(size, pieces, uneven)} "
            f"size={size}x{size} kernel={k}x{k} stride={s}x{s} "
            f"dilation={d}x{d} pad={p}x{p} {channels}")


def line(size, k, s, p, pieces, channels="n=2 c=16 k=8"):
    """Returns a 1-D convolution: W is 1."""
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
    ("beta adds the old values of y",
     square(15, 3, 1, 1, 3, "n=1 c=2 k=2 alpha=-0.5 beta=2")),
    ("bias and activation, z in the memory of y",
     square(15, 3, 1, 1, 3, "n=1 c=2 k=2 op=conv_fused act=relu zy=1 "
            "beta=0.5")),
    ("lines with gaps between them",
     square(15, 5, 1, 2, 3, "n=2 c=2 k=2 gap=3")),
    ("a data gradient, its old values added",
     square(17, 3, 1, 1, 3, "n=2 c=2 k=3 op=conv_data alpha=-0.5 beta=2")),
    ("a data gradient over a stride: the transposed convolution",
     square(23, 4, 2, 1, 3, "n=1 c=2 k=3 op=conv_data")),
    ("a data gradient with rows that no output sees",
     square(22, 2, 4, 0, 2, "n=1 c=2 k=2 op=conv_data beta=1")),
    ("a data gradient, dilated and grouped",
     square(24, 3, 1, 2, 3, "n=1 c=4 k=2 groups=2 op=conv_data", d=2)),
    ("a filter gradient, its old values added once",
     square(17, 3, 1, 1, 3, "n=2 c=2 k=3 op=conv_filter alpha=-0.5 beta=2")),
    ("a filter gradient out of phase",
     square(23, 5, 3, 2, 3, "n=1 c=2 k=3 op=conv_filter")),
    ("a filter gradient in half precision",
     square(19, 3, 1, 1, 4, "n=2 c=4 k=4 type=half order=NHWC "
            "op=conv_filter")),
    ("a filter gradient whose windows reach all planes",
     "mesh=2 split=N:0 partN=0,1,2 size=4x5x4 kernel=4x1x1 stride=2x1x1 "
     "dilation=1x1x1 pad=3x0x0 n=2 c=6 k=4 groups=2 op=conv_filter"),
    ("a piece's filter gradient multiplies no infinity by padding",
     "mesh=6 split=W:0 partW=0,1,2,7,10,12,13 size=3x2x13 kernel=3x1x3 "
     "stride=1x1x3 pad=2x0x3 n=2 c=6 k=4 groups=2 holes=2 strategy=extend "
     "seed=763230322 op=conv_step"),
    # One device packs x; of one column a rank's own dy is a range of columns.
    ("a filter gradient whose dy an engine rejects, too",
     "op=conv_step mesh=2 split=W:0 partW=0,1,2 type=float n=1 c=1 gap=3 "
     "alpha=1 beta=0 seed=821241163 strategy=auto wrap=H size=12x2 kernel=4x1 "
     "stride=2x1 dilation=3x1 pad=3x0 groups=1 k=1"),
    *((f"infinities near seams and ends, {what}",
       f"op={op} mesh=2 split=H:0 partH=0,9,18 size=18x10 n=1 c=8 k=8 holes=1 "
       f"{words}") for what, op, words in (
           ("filter gradient", "conv_filter", "kernel=7x3 pad=3x1 c=2 k=3 "
            "seed=6"),
           ("filter gradient, of two dimensions", "conv_filter",
            "mesh=2x2 split=H:0,W:1 partW=0,5,10 kernel=7x7 pad=3x3 seed=1"),
           ("forward", "conv_forward", "kernel=5x3 pad=2x1 seed=1"),
           ("data gradient", "conv_data", "kernel=5x3 pad=2x1 seed=3"))),
    ("a bias gradient, its old values added once",
     square(17, 3, 1, 1, 3, "n=2 c=2 k=3 op=conv_bias beta=0.5")),
    ("a bias gradient with gaps between its elements",
     square(17, 3, 1, 1, 3, "n=2 c=2 k=3 op=conv_bias lay.db=HCNW/N2r")),
    ("x channels last, y channels first, lines of different lengths",
     square(17, 3, 1, 1, 3, "n=2 c=2 k=3 lay.x=NHWC/C1r/W2 lay.y=CNHW/W3r")),
    ("an input cut in channels, moved with its halo",
     "mesh=2 split=H:0 partH=0,4,9 size=9x7 n=2 c=4 k=3 kernel=3x3 pad=1x1 "
     "on.x=C:0@0,1,4 own_sizes=1 gap=2"),
    ("an input cut in channels and rows, moved with its halo",
     "mesh=2x2 split=H:0,W:1 partH=0,4,9 partW=0,3,7 size=9x7 n=1 c=3 k=2 "
     "kernel=3x5 stride=2x1 pad=1x2 on.x=C:1@0,2,3/H:0@0,6,9 own_sizes=1"),
    ("both gradients without keep",
     square(17, 3, 1, 1, 3, "n=2 c=2 k=3 op=conv_gradients repeat=3")),
    ("both gradients with keep = dy",
     square(17, 3, 1, 1, 3, "n=2 c=2 k=3 op=conv_gradients repeat=3 keep=1")),
    ("both gradients out of phase, with keep = dy",
     square(23, 5, 3, 2, 3, "n=1 c=2 k=3 op=conv_gradients repeat=3 keep=1 "
            "beta=0.5 order=NHWC")),
    ("an addend cut in W, the same for every sample",
     "op=add mesh=2x4 split=N:0,W:1 partN=0,1,3 partW=0,2,4,6,8 n=3 c=2 "
     "size=1x8 broad=NCH"),
    ("a data gradient with keep, its dy cut elsewhere",
     "op=conv_data mesh=2x2 split=H:0,W:1 partH=0,2,3 partW=0,1,3 size=3x3 "
     "kernel=1x2 stride=1x1 pad=0x0 wrap=H keep=1 on.dy=- own_sizes=1"),
    *((f"columns of {type} copied by {way}, {op}",
       f"op={op} mesh=3 split=W:0 partW=0,7,10,21 size=5x21 kernel=3x5 "
       f"pad=1x2 n=2 c=3 k=2 type={type} inputs={inputs} cost={cost}")
      for way, cost in (("the runtime", 0), ("a kernel", NARROW))
      for op in ("conv_forward", "conv_data", "conv_filter")
      for type, inputs in (("float", "subnormal"), ("half", "huge"),
                           ("double", "cancel"))),
    # A Hopper GPU computes the copies of rows, not the strides of dx itself.
    ("a data gradient around W, into a dx of strides that engines reject",
     "op=conv_data mesh=3 split=W:0 partW=0,7,14,22 size=19x22 n=1 c=4 k=3 "
     "kernel=3x1 stride=1x4 pad=2x1 wrap=W on.dy=W:@0,1,2,6 own_sizes=1 "
     "lay.dx=CNHW/W1r beta=-0.74 order=NCHW seed=323769929"),
    # A Hopper GPU wants equal strides of y and dy, whose pieces are not alike.
    ("pooling backward in an odd order, y and dy cut at other columns",
     "op=pool_backward mesh=3 split=W:0 partW=0,1,9,15 n=1 c=1 order=WNHC "
     "size=2x15 mode=max kernel=1x1 stride=1x2 pad=0x0 strategy=extend "
     "ycutW=0,5,6,8 own_sizes=1 on.y=W:@0,1,5,8 seed=315827150"),
    # The last rank's own call reads a column that no output sees.
    ("a workspace for a piece with a column that no window sees",
     "mesh=3 split=W:0 partW=0,5,8,17 size=2x17 n=1 c=1 k=1 kernel=2x2 "
     "stride=2x2 strategy=auto seed=1"),
]


def gradients(name, words):
    """Returns the three gradients of a convolution."""
    return [(f"{name}, {op}", f"op=conv_{op} {words}")
            for op in ("data", "filter", "bias")]


for n, k, s, p in PARAMETERS:
    for size in (32, 256):
        NAMED += gradients(f"conv1d {n}, {size}", line(size, k, s, p, 3))
    planes = cube(16, k, s, p).replace("mesh=2x2 split=D:0,H:1", "mesh=2 "
                                       "split=D:0").replace(" partH=0,9,16", "")
    NAMED += [(f"conv3d {n}, planes", planes)]
    NAMED += gradients(f"conv3d {n}, planes", planes)
    NAMED += gradients(f"conv2d {n}, rows", square(32, k, s, p, 4,
                                                   "n=2 c=16 k=8"))
    NAMED += gradients(f"conv2d {n}, rows and columns", mesh2d(32, k, s, p))
    NAMED += gradients(f"conv3d {n}, planes and rows", cube(16, k, s, p))

NAMED += [("conv2d k3s2p1, 128 rows and columns", mesh2d(128, 3, 2, 1)),
          ("conv2d k3s1p1, 256 rows", square(256, 3, 1, 1, 3,
                                             "n=1 c=4 k=4"))]
NAMED += gradients("conv2d k3s2p1, 128 rows and columns",
                   mesh2d(128, 3, 2, 1))
NAMED += [("a padded convolution, k3p2", square(64, 3, 1, 2, 4, "n=2 c=4 k=4"))]
NAMED += gradients("a padded convolution, k3p2",
                   square(64, 3, 1, 2, 4, "n=2 c=4 k=4"))
NAMED += [(f"{op} in {type}, {order}",
           square(33, 5, 2, 2, 4, f"n=2 c=4 k=4 op={op} type={type} "
                  f"order={order}"))
          for op in ("conv_forward", "conv_data", "conv_filter")
          for type in ("half", "bfloat16") for order in ("NCHW", "NHWC")]

# Periodic dimensions: the split one, another one, both; also on one rank.
AROUND = "pad=2x1 kernel=5x3 stride=1x1 dilation=1x1 n=2 c=2 k=2"
AROUND2 = "pad=2x2 kernel=3x4 stride=2x3 n=1 c=2 ties=1"
for ranks in (1, 2, 3, 8):
    for wrap in ("H", "W", "HW"):
        n = 5 * ranks + 4
        rows = f"mesh={ranks} split=H:0 wrap={wrap} partH={cut(n, ranks)} " \
            f"size={n}x12"
        NAMED += [(f"around {wrap}, {op}, rows on {ranks}",
                   f"op={op} {rows} {AROUND}")
                  for op in ("conv_forward", "conv_data", "conv_filter")]
        NAMED += [(f"around {wrap}, {op}, {mode}, rows on {ranks}",
                   f"op={op} mode={mode} {rows} {AROUND2}")
                  for op in ("pool_forward", "pool_backward")
                  for mode in ("max", "avgex")]

# The same ops on one to eight ranks.
for ranks in range(1, 9):
    for n, k, s, p in PARAMETERS:
        words = square(48, k, s, p, ranks, "n=1 c=2 k=2")
        NAMED += [(f"{op} {n}, {ranks} ranks", f"op={op} {words}")
                  for op in ("conv_forward", "conv_data", "conv_filter")]
        if k > 2 * p:
            words = words.replace("dilation=1x1 ", "").replace(" k=2", "")
            NAMED += [(f"{op} {n}, {ranks} ranks", f"op={op} ties=1 {words}")
                      for op in ("pool_forward", "pool_backward")]

# The transposed convolution of PyTorch and others calls the data gradient as
# its forward function. Its input is dy, so `part` cuts dy.
TRANSPOSED = [("k2s2p0", 2, 2, 0), ("k3s1p1", 3, 1, 1), ("k3s2p1", 3, 2, 1),
              ("k3s3p0", 3, 3, 0), ("k4s2p1", 4, 2, 1), ("k2s1p0", 2, 1, 0)]


def transposed(spatial, rows, k, s, p):
    x = lambda value: "x".join([str(value)] * spatial)
    size = x((rows - 1) * s - 2 * p + k)
    split = {1: f"mesh=3 split=H:0 partH={cut(rows, 3)}",
             2: f"mesh=2x2 split=H:0,W:1 partH={cut(rows, 2)} "
                f"partW={cut(rows, 2)}",
             3: f"mesh=2x2 split=D:0,H:1 partD={cut(rows, 2)} "
                f"partH={cut(rows, 2)}"}[spatial]
    words = {"size": size, "kernel": x(k), "stride": x(s), "pad": x(p)}
    if spatial == 1:
        words = {key: value + ("x0" if key == "pad" else "x1")
                 for key, value in words.items()}
    return (f"op=conv_data given=dy {split} n=2 c=4 k=4 " +
            " ".join(f"{key}={value}" for key, value in words.items()))


NAMED += [(f"conv_transpose{d}d {n}",
           transposed(d, 32 if d < 3 else 8, k, s, p))
          for d in (1, 2, 3) for n, k, s, p in TRANSPOSED]

POOLS = [("k2s2p0", 2, 2, 0), ("k4s4p0", 4, 4, 0), ("k3s2p1", 3, 2, 1),
         ("k3s1p1", 3, 1, 1), ("k2s3p0", 2, 3, 0)]
for n, k, s, p in POOLS:
    for op in ("forward", "backward"):
        for mode in ("max", "avgin", "avgex"):
            NAMED += [(f"{mode} pool{d}d {n}, {op}",
                       f"op=pool_{op} mode={mode} ties=1 " + words)
                      for d, words in (
                          (1, line(32, k, s, p, 3, "n=2 c=3")),
                          (2, mesh2d(32, k, s, p, "n=2 c=3")),
                          (3, cube(16, k, s, p, "n=2 c=2")))]

# Gradients of parameters that sundog sums over some axes only, or not at all.
NAMED += [(f"{op}, sum = {axes}, {finds}",
           f"op={op} view=shard mesh=2x2 split=N:0,H:1 partN=0,1,3 "
           "partH=0,4,9 n=3 c=2 k=3 "
           "size=9x8 kernel=3x3 stride=1x1 dilation=1x1 pad=1x1 beta=0.5 "
           f"sum={axes} finds={finds}")
          for op in ("conv_filter", "conv_bias") for axes in ("a", "b", "no")
          for finds in (0, 1)]

# The ranks' sums of dy are added in float, not in their type.
NAMED += [(f"gradient of the bias, {type}, {inputs}",
           f"op=conv_bias mesh=5 split=H:0 partH=0,3,7,8,17,22 size=22x6 n=2 "
           f"c=3 k=9 kernel=3x3 pad=1x1 alpha=1.5 type={type} inputs={inputs}")
          for type in ("half", "bfloat16")
          for inputs in ("cancel", "cancel+huge", "huge", "subnormal")]

# sundog applies an infinite factor to sums over ranks, not to their addends:
# they could become infinities of both signs.
THIRDS = "mesh=3 split=H:0 partH=0,4,5,11 size=11x6 n=2 c=3"
for beta in (0, 0.5):
    NAMED += [(f"an infinite factor, {op}, {type}, beta {beta}",
               f"op={op} {THIRDS} {words} alpha=-inf beta={beta} type={type}")
              for op, words in (
                  ("conv_filter", "k=3 kernel=3x3 pad=1x1"),
                  ("conv_bias", "k=3 kernel=3x3 pad=1x1"),
                  ("conv_data", "k=4 kernel=3x3 pad=1x1"),
                  ("conv_data", "k=4 kernel=3x3 pad=1x1 wrap=HW"),
                  ("bn_backward", ""))
              for type in ("float", "double", "half")]

# Only windows that wrap around an end see some rows of dx. No row of zeros may
# be multiplied by an infinite weight for them.
for n, words in (
        ("stride beyond the window", "mesh=3 split=H:0 partH=0,1,2,3 size=3x4 "
         "kernel=1x2 stride=1x4 dilation=1x2 pad=0x1 wrap=W"),
        ("rows", "mesh=3 split=H:0 partH=0,4,8,12 size=12x3 kernel=3x1 "
         "stride=3x1 pad=1x0 wrap=H"),
        ("rows and columns", "mesh=2x2 split=H:0,W:1 partH=0,4,12 "
         "partW=0,7,12 size=12x12 kernel=3x2 stride=3x4 dilation=1x2 pad=1x1 "
         "wrap=HW")):
    NAMED += [(f"infinite weights around an end, {n}, beta {beta}, {seed}",
               f"op=conv_data {words} c=2 k=2 n=2 beta={beta} holes=1 "
               f"seed={seed}")
              for beta in (0, 0.5) for seed in (1, 2, 3)]

# `window = global`: each rank's window is a part of one window over all pieces.
ONE = "pooling=global mesh=2x2 split=H:0,W:1 partH=0,3,8 partW=0,5,9 " \
    "size=8x9 kernel=8x9 stride=1x1 pad=0x0 n=2 c=3 ties=1"
NAMED += [(f"one window, {mode}, {op}, {type}",
           f"op=pool_{op} mode={mode} type={type} {ONE}")
          for op in ("forward", "backward")
          for mode in ("max", "maxdet", "avgin", "avgex")
          for type in ("float", "half")]
# If means of pieces cancel each other, they need more digits than their type
# has; and the sum of a piece may overflow a half.
NAMED += [(f"one window, means that cancel, {mode}, {type}, {inputs}",
           f"op=pool_forward mode={mode} type={type} pooling=global mesh=5 "
           "split=H:0 partH=0,3,7,10,17,22 size=22x16 kernel=22x2 stride=1x2 "
           f"pad=0x{pad} n=4 c=8 inputs={inputs}")
          for mode, pad in (("avgin", 0), ("avgex", 1))
          for type in ("half", "bfloat16")
          for inputs in ("cancel", "cancel+huge")]

ROWS257 = "mesh=4 split=H:0 partH=0,65,130,194,257 n=2 c=3 size=257x257"
for op in ("training", "inference", "backward"):
    NAMED += [(f"batch norm, {op}, {mode}", f"op=bn_{op} {ROWS257} mode={mode}")
              for mode in ("spatial", "each")]
    NAMED += [(f"batch norm, {op}, of a large mean",
               f"op=bn_{op} {ROWS257} level=1000 drift=3")]
    NAMED += [(f"batch norm, {op}, {name}", f"op=bn_{op} " + words)
              for name, words in (
                  ("one image on each rank", "mesh=4 split=N:0 partN=0,1,2,3,4 "
                   "n=4 c=3 size=5x4 mode=each"),
                  ("one element of each channel on each rank",
                   "mesh=4 split=N:0 partN=0,1,2,3,4 n=4 c=3 size=1x1"),
                  ("batch and rows", "mesh=2x2 split=N:0,H:1 partN=0,1,3 "
                   "partH=0,3,9 n=3 c=4 size=9x8 saved=0 beta=0.5"),
                  ("batch and channels", "mesh=2x2 split=N:0,C:1 partN=0,1,3 "
                   "partC=0,1,3 n=3 c=3 size=9x8"),
                  ("half, channels last", "mesh=2x2 split=N:0,H:1 partN=0,1,3 "
                   "partH=0,3,9 n=3 c=4 size=9x8 type=half order=NHWC level=3"),
                  ("planes and rows, in place", "mesh=2x2 split=D:0,H:1 "
                   "partD=0,1,5 partH=0,3,9 n=2 c=2 size=5x9x4 at=1"))]
# Statistics of all ranks are merged by weights, or by the vendor's function if
# all parts have equal sizes. Without saved statistics the gradient merges, too.
for name, words in (
        ("even parts", "mesh=4 split=H:0 partH=0,3,6,9,12 n=2 c=3 size=12x7"),
        ("even parts of two dimensions", "mesh=2x2 split=H:0,W:1 partH=0,5,10 "
         "partW=0,4,8 n=3 c=70 size=10x8"),
        ("even parts that products make", "mesh=2x2 split=N:0,H:1 partN=0,2,4 "
         "partH=0,5,10 n=4 c=3 size=10x3"),
        ("uneven parts of two dimensions", "mesh=2x3 split=H:0,W:1 partH=0,1,8 "
         "partW=0,1,2,9 n=1 c=65 size=8x9"),
        ("one element beside many", "mesh=3 split=H:0 partH=0,1,2,40 n=1 c=5 "
         "size=40x1")):
    NAMED += [(f"batch norm, {op}, {name}, {type}, mean {level}",
               f"op=bn_{op} {words} type={type} level={level} drift=3 saved=0")
              for op in ("training", "backward")
              for type, level in (("float", 10000), ("double", 10000),
                                  ("half", 50), ("bfloat16", 3))]
    NAMED += [(f"batch norm, training, {name}, each",
               f"op=bn_training {words} mode=each level=1000 n=4")]
for op in ("training", "backward"):
    NAMED += [(f"batch norm, {op}, {fuse} fused, by {api}",
               f"op=bn_{op} {ROWS257.replace('257x257', '257x8')} api={api} "
               f"fuse={fuse}")
              for api in ("ex", "norm") for fuse in ("act", "add")]
NAMED += [(f"local response, {op}", f"op=lrn_{op} "
           + ROWS257.replace("257x257", "257x8")) for op in ("forward",
                                                             "backward")]

# Group normalisation: a batch norm whose channels are the groups of one image
# computes the same mean and variance.
NAMED += [(f"group norm, {groups} groups, {op}",
           f"op=bn_{op} mesh=4 split=H:0 partH=0,65,130,194,257 n=1 "
           f"c={2 * groups} size={8 // groups}x257x9")
          for groups in (1, 4) for op in ("training", "backward")]

# A small U-shaped network in three dimensions, two levels deep.
DEEP = ("conv.3.1.1.4-act.tanh-keep-pool.2.2.0.avgin-conv.3.1.1.6-bn-act.tanh-"
        "keep-pool.2.2.0.avgin-conv.3.1.1.6-up.2.2.0.6-add-up.2.2.0.4-add-"
        "conv.1.1.0.2")
NAMED += [("a network of two levels, 3-D, planes and rows",
           f"op=network net={DEEP} mesh=2x2 split=D:0,H:1 partD=0,8,16 "
           "partH=0,4,16 n=1 c=2 size=16x16x8"),
          ("a network of two levels, 2-D, rows",
           f"op=network net={DEEP} mesh=3 split=H:0 partH=0,8,20,32 n=2 c=2 "
           "size=32x16")]

# Every placement to every other one; some pieces are empty.
PLACES = {"replicated": ("-", "-"), "rows": ("H:0+1", "H:0,0,3,3,7"),
          "rows along one axis": ("H:1", "H:0,5,7"),
          "columns": ("W:0+1", "W:0,2,2,5,5"),
          "a mesh": ("H:0;W:1", "H:0,6,7;W:0,1,5"),
          "a mesh with its axes swapped": ("H:1;W:0", "H:0,1,7;W:0,0,5"),
          "channels": ("C:0", "C:0,3,3"), "the batch": ("N:1", "N:0,1,2"),
          "sums": ("sum:0+1", "-"), "sums of rows": ("H:0;sum:1", "H:0,2,7")}
NAMED += [(f"redistribute {a} to {b}",
           f"op=redistribute mesh=2x2 split=H:0+1 from={PLACES[a][0]} "
           f"cutfrom={PLACES[a][1]} to={PLACES[b][0]} cutto={PLACES[b][1]} "
           "n=2 c=3 size=7x5 into=NHWC")
          for a in PLACES for b in PLACES]
# A mesh of three axes.
NAMED += [("redistribute over three axes" + (", sums" if "sum" in a else ""),
           f"op=redistribute mesh=2x2x2 split=H:0+1+2 from={a} cutfrom={b} "
           "to=W:0+2;C:1 cutto=W:0,1,1,4,5;C:0,1,3 n=2 c=3 size=9x5 into=NHWC")
          for a, b in (("H:0+1+2", "H:0,1,1,3,4,6,8,8,9"),
                       ("sum:1;H:0+2", "H:0,2,5,8,9"))]

NAMED += [("linear, 2345 rows", "mesh=4 split=N:0 partN=0,600,1187,1760,2345 "
           f"op={op} n=2345 c=8 k=5 size=1x1 kernel=1x1")
          for op in ("conv_forward", "conv_data", "conv_filter", "conv_bias")]

NAMED += [(f"{fn} of (2,128,2) over {over}",
           f"op=reduce fn={fn} over={over} mesh=3 split=H:0 "
           "partH=0,50,51,128 n=2 c=1 size=128x2")
          for fn in ("add", "avg", "norm2", "max")
          for over in ("N", "H", "W", "NH", "NW", "HW", "NCHW")]
NAMED += [("the mean, rows and columns uneven",
           "op=reduce fn=avg over=NCHW mesh=2x3 split=H:0,W:1 partH=0,3,17 "
           "partW=0,1,2,9 n=2 c=3 size=17x9"),
          ("softmax over uneven rows",
           "op=softmax_forward mode=instance scale=60 mesh=3 split=H:0 "
           "partH=0,1,9,12 n=2 c=3 size=12x5"),
          ("the gradient of softmax over uneven rows",
           "op=softmax_backward mode=instance mesh=3 split=H:0 "
           "partH=0,1,9,12 n=2 c=3 size=12x5")]
NAMED += [(f"{way} {algo} softmax of channels that are split",
           f"op=softmax_{way} algo={algo} mode=channel n=2 c=5 mesh=2x2 "
           "split=C:1 partC=0,2,5 size=3x4")
          for algo in ("accurate", "log") for way in ("forward", "backward")]
NAMED += [("softmax of shards that are all -inf",
           "op=softmax_forward mode=instance holes=1 n=2 c=1 mesh=8 split=H:0 "
           "partH=0,1,2,4,5,6,7,8,9 size=9x1 seed=3"),
          ("a maximum with its index over uneven rows",
           "op=reduce fn=max indices=1 nan=1 holes=1 over=CHW mesh=4 split=H:0 "
           "partH=0,2,3,7,9 n=2 c=3 size=9x4")]

# Neighbourhood attention: the windows of NATTEN, and those that others refuse.
# GRIDS: for each number of dimensions a grid, and how it is cut.
GRIDS = {1: ("64x1", f"mesh=3 split=H:0 partH={cut(64, 3)}"),
         2: ("16x16", f"mesh=2x2 split=H:0,W:1 partH={cut(16, 2)} "
             f"partW={cut(16, 2)}"),
         3: ("6x6x6", f"mesh=2x2 split=D:0,H:1 partD={cut(6, 2)} "
             f"partH={cut(6, 2)}")}


def neighborhood(grid, kernel, dilation=1, where="", size="", words=""):
    """Returns a case with equal windows in all dimensions of the grid."""
    each = lambda value, rest: "x".join([str(value)] * grid + rest)
    one = ["1"] if grid == 1 else []
    return (f"dims={grid} kernel={each(kernel, one)} "
            f"dilation={each(dilation, one)} size={size or GRIDS[grid][0]} "
            f"{where or GRIDS[grid][1]} n=2 c=2 hq=4 hv=4 " + words)


SMALL = "mesh=4 split=H:0 partH=0,2,3,6,9"
LINES = [(f"{d}-D k{k}", neighborhood(d, k))
         for d in (1, 2, 3) for k in (3, 5)]
LINES += [(f"{d}-D k3, dilation 2", neighborhood(d, 3, 2)) for d in (1, 2, 3)]
LINES += [("1-D k5, dilation 3", neighborhood(1, 5, 3)),
          ("1-D, pieces smaller than the kernel",
           neighborhood(1, 7, 1, SMALL, "9x1")),
          ("2-D, pieces smaller than the kernel",
           neighborhood(2, 5, 1, SMALL, "9x6")),
          ("2-D, pieces smaller than the kernel, dilation 2",
           neighborhood(2, 3, 2, SMALL, "9x6")),
          ("3-D, pieces smaller than the kernel", neighborhood(
              3, 3, 1, "mesh=2x3 split=D:0,W:1 partD=0,1,4 partW=0,1,2,4",
              "4x3x4")),
          ("one row on each of 8 ranks", neighborhood(
              1, 7, 1, "mesh=8 split=H:0 partH=0,1,2,3,4,5,6,7,8", "8x1")),
          ("a window as large as the grid", neighborhood(2, 6, 1, "mesh=3 "
           "split=H:0 partH=0,1,4,6", "6x6")),
          ("a cut window larger than the grid", neighborhood(
              1, 9, 2, "mesh=3 split=H:0 partH=0,1,4,6", "6x1", "cut=1")),
          ("k1", neighborhood(2, 1)),
          ("even kernels", neighborhood(2, 4)),
          ("windows cut at the edges", neighborhood(2, 5, 1, words="cut=1")),
          ("causal in time", neighborhood(3, 3, words="causal=1x0x0")),
          ("causal in all dimensions, dilation 2",
           neighborhood(2, 4, 2, words="causal=1x1")),
          ("half, channels last",
           neighborhood(2, 5, words="type=half order=NHWC")),
          ("bfloat16", neighborhood(1, 5, words="type=bfloat16")),
          ("double, rows over two axes", neighborhood(
              2, 5, 1, "mesh=2x3 split=H:0+1 partH=0,1,4,9,10,14,16",
              words="type=double")),
          ("images and rows", neighborhood(
              2, 5, 1, "mesh=2x3 split=N:0,H:1 partN=0,1,2 partH=0,3,9,16")),
          ("heads", neighborhood(2, 5, 1, "mesh=2 split=C:0 partC=0,1,2")),
          ("heads and columns", neighborhood(
              2, 5, 1, "mesh=2x2 split=C:0,W:1 partC=0,1,2 partW=0,7,16")),
          ("keys in other parts", neighborhood(
              2, 5, 1, "mesh=3 split=H:0 partH=0,3,9,16", words="ycutH=0,8,"
              "10,16")),
          ("keys whole on every rank", neighborhood(2, 5, words="kv=whole")),
          ("one rank", neighborhood(2, 5, 1, "mesh=1 split=H:0 partH=0,16"))]
NAMED += [(f"neighbourhood attention, {way}: {name}",
           f"op=neighborhood_{way} {words}")
          for name, words in LINES for way in ("forward", "backward")]

# Keys, values, outputs and gradients are cut in other places than queries.
PATCH = ("n=4 c=2 hq=3 hv=2 kernel=3x3 dims=2 size=12x8 mesh=2x2 "
         "split=H:0,W:1 partH=0,5,12 partW=0,3,8 ")
NAMED += [(f"operands apart, neighbourhood attention, {name}",
           f"op=neighborhood_{way} {PATCH}{words}")
          for name, way, words in (
              ("k in the batch, v in columns", "forward",
               "on.k=N:0@0,1,4 on.v=W:0@0,5,8"),
              ("k on every rank, v in other parts", "backward",
               "on.k=- on.dk=- on.v=H:@0,2,12/W:@0,4,8"),
              ("o in channels", "forward", "on.o=C:0@0,1,4 type=half"),
              ("o in the batch", "forward", "on.o=N:1@0,3,4 on.v=local"),
              ("k over the other axis", "backward",
               "on.k=H:1@0,3,12 on.dk=H:1@0,3,12 on.dv=C:1@0,3,4"),
              ("gradients everywhere else", "backward",
               "on.do=C:0@0,2,4 on.dq=- on.dk=H:@0,2,12/W:@0,4,8 "
               "on.dv=N:1@0,3,4"))]
NAMED += [("operands apart, neighbourhood attention, only v's tag shows where "
           "it is", "op=neighborhood_backward mesh=3 split=W:0 "
           "partW=0,5,11,17 n=3 c=2 size=12x5x17 dims=3 hq=2 hv=3 kv=whole "
           "kernel=3x1x3 dilation=3x1x1 own_sizes=1 on.k=local on.v=local "
           "on.do=local on.dq=- on.dk=C:0@0,1,3,4")]

# Tokens are columns, because cuBLAS sees a row-major array as its transpose.
TOKENS = "0,600,1187,1760,2345"
NAMED += [("linear, 2345 rows, product",
           f"op=matmul ta=T mesh=4 split=n:0 partn={TOKENS} size=5x2345x8x0"),
          ("linear, 2345 rows, product, with bias and GELU",
           f"op=matmul_lt follow=gelubias ta=T mesh=4 split=n:0 partn={TOKENS} "
           "size=5x2345x8x0"),
          ("linear, 2345 rows, gradient of the data",
           f"op=matmul mesh=4 split=n:0 partn={TOKENS} size=8x2345x5x0"),
          ("linear, 2345 rows, gradient of the weights",
           f"op=matmul tb=T beta=1 mesh=4 split=k:0 partk={TOKENS} "
           "size=8x5x2345x0")]

# Every row of the table of placements in doc/products.md; the hidden units are
# cut into 11+11+10.
HIDDEN = "mesh=3 part{0}=0,11,22,32 "
NAMED += [(f"product, {name}", HIDDEN.format(dim) + f"split={dim}:0 " + words)
          for name, dim, words in (
              ("rows of A", "m", "op=matmul size=32x60x24x0"),
              ("columns of B", "n", "op=matmul size=60x32x24x0"),
              ("terms, summed", "k", "op=matmul size=24x60x32x0"),
              ("terms, summed in pieces of rows", "k",
               "op=matmul size=24x60x32x0 at_c=m:0"),
              ("terms, summed in pieces of columns", "k",
               "op=matmul size=24x60x32x0 at_c=n:0 beta=0.5"),
              ("rows of A and columns of B, A gathered", "n",
               "op=matmul size=60x32x24x0 at_a=m:0"),
              ("rows of A and columns of B, B gathered", "m",
               "op=matmul size=32x60x24x0 at_b=n:0"),
              ("rows of A and terms of B, B gathered", "m",
               "op=matmul size=32x60x24x0 at_b=k:0"),
              ("rows of A and terms of B, sums scattered", "k",
               "op=matmul size=24x60x32x0 at_a=m:0 at_c=m:0"),
              ("terms of A, all of B", "k",
               "op=matmul size=24x60x32x0 at_b=replicated"),
              ("members of the batch", "b",
               "op=matmul api=strided size=5x6x7x32"),
              ("a bias added once", "k", "op=matmul_lt follow=bias "
               "size=24x60x32x0 beta=1 apart=1"),
              ("an activation after the sum", "k", "op=matmul_lt "
               "follow=relubias size=24x60x32x0 rows=1 at_c=n:0"),
              ("old values by rows, sums by columns", "k", "op=matmul_lt "
               "size=24x60x32x0 beta=0.5 apart=1 rows=c"),
              ("old values by rows, sums in pieces of columns", "k",
               "op=matmul_lt follow=bias size=32x32x32x0 beta=0.5 apart=1 "
               "rows=ac at_c=n:0"),
              ("old values by columns, sums in pieces of rows", "k",
               "op=matmul_lt size=32x32x32x2 beta=0.5 apart=1 one_c=1 "
               "rows=bd at_c=m:0"),
              ("halves, summed in float", "k", "op=matmul api=gemmex type=half "
               "halves=1 size=24x60x32x0 beta=1"),
              ("a vector, rows", "m", "op=matvec size=32x1x24x0"),
              ("a vector, terms", "k", "op=matvec ta=T size=24x1x32x0"),
              ("vectors with gaps between elements", "k",
               "op=matvec size=24x1x32x0 beta=0.5 inc_b=3 inc_c=2"))]

NAMED += [(f"product, ranks without terms, {name}",
           f"mesh=4 split=k:0 partk=0,1,2,2,2 {words} view=whole")
          for name, words in (
              ("factors by columns and rows",
               "op=matmul_lt size=10x9x2x0 apart=1 rows=b"),
              ("sums by rows",
               "op=matmul_lt size=10x9x2x0 beta=0.5 apart=1 rows=d at_c=m:0"),
              ("old values", "op=matmul size=10x9x2x0 beta=0.5 tb=T"),
              ("halves", "op=matmul api=gemmex type=half ctype=half "
               "size=10x9x2x0 beta=0.5 at_c=n:0"))]

# Attention: sequences in these pieces. Cases with an empty piece run in the
# whole view only, because cuDNN has no empty sequences.
SEQUENCES = {1: [[9]], 2: [[8, 8], [13, 3]],
             3: [[11, 11, 10], [20, 1, 3], [12, 0, 12], [0, 24, 0]],
             4: [[6] * 4, [3, 3, 3, 1], [0, 0, 17, 0]],
             8: [[4] * 8, [1, 5, 2, 9, 1, 1, 3, 4]]}
WINDOWS = [(0, 0), (1, 0), (0, 1), (512, 512), (512, 0), (3, 7), (11, 2),
           (2, 25), (1 << 20, 0), (1 << 20, 1 << 20)]


def attention(sizes, window, words):
    first = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
    return (f"op=attention mesh={len(sizes)} split=SEQ:0 "
            f"partSEQ={','.join(map(str, first))} "
            f"window={window[0]}x{window[1]} {words}" +
            (" view=whole" if 0 in sizes else ""))


NAMED += [(f"attention, {'+'.join(map(str, sizes))}, window {left},{right}, "
           f"batch {n}", attention(sizes, (left, right), f"n={n} {words}"))
          for pieces in SEQUENCES.values() for sizes in pieces
          for left, right in WINDOWS
          for n, words in (
              (1, "heads=4 sizes=6x6x6 projected=2x2x2x6 residual=1 repeat=2"),
              (3, "heads=3 sizes=4x4x4 projected=4x4x2x0 same=1 biases=1 "
                  "axes=1x1x1x0"))]
NAMED += [(f"attention, {name}, {type}",
           attention(sizes, window, f"type={type} {words}"))
          for type in ("float", "half", "double", "bfloat16")
          for name, sizes, window, words in (
              ("256 of 8 heads of 4", [64] * 4, (32, 0),
               "heads=8 sizes=32x32x32 projected=4x4x4x32 n=1"),
              ("64, causal, uneven", [30, 3, 20, 11], (1 << 20, 0),
               "heads=8 sizes=16x16x16 projected=2x2x2x16 n=4"),
              ("no projections", [5, 9], (3, 2), "heads=2 n=2"),
              ("two beams", [5, 9], (3, 2), "beam=2 n=2 biases=1 "
               "projected=3x3x3x4 residual=1 adds=1"))]
NAMED += [(f"attention by heads, {'+'.join(map(str, sizes))}, batch {n}",
           attention(sizes, window, f"strategy=heads heads={heads} n={n} " +
                     words))
          for sizes, heads in (([8, 8], 4), ([11, 11, 10], 3), ([13, 3], 2),
                               ([3, 3, 3, 1], 4), ([4] * 8, 8))
          for window in ((3, 7), (1 << 20, 0), (1 << 20, 1 << 20))
          for n, words in (
              (1, "sizes=6x6x6 projected=2x2x3x6 residual=1 repeat=2 biases=1"),
              (3, "sizes=4x4x4 projected=4x4x2x0 same=1 axes=1x1x1x0 adds=1"))]
NAMED += [(f"attention, batch {n}, {rows} of 8 heads of {each}, window "
           f"{left},{right}", attention(sizes, (left, right), f"n={n} heads=8 "
                                        f"sizes={8 * each}x{8 * each}x"
                                        f"{8 * each} projected={each}x{each}x"
                                        f"{each}x{8 * each} scale=0.125"))
          for n, rows, each, sizes, left, right in (
              (1, 256, 32, [64] * 4, 32, 32),
              (1, 256, 32, [64] * 4, 1 << 20, 1 << 20),
              (4, 256, 32, [100, 28, 127, 1], 1 << 20, 0),
              (1, 512, 64, [171, 171, 170], 32, 32))]
NAMED += [("attention, 64 queries of 256 keys", attention(
    [30, 3, 20, 11], (1 << 20, 1 << 20), "keys=256 heads=8 sizes=32x32x32 "
    "projected=4x4x4x32 n=4"))]
NAMED += [(f"attention, 17 keys of 10 queries, {strategy}",
           attention([3, 3, 3, 1], (1 << 20, 1 << 20), "keys=17 heads=4 n=2 "
                     f"projected=3x3x2x4 strategy={strategy}"))
          for strategy in ("auto", "gather", "heads")]
NAMED += [("attention, sequence and batch split",
           "op=attention mesh=2x2 split=SEQ:0,BATCH:1 partSEQ=0,7,16 "
           "partBATCH=0,1,3 n=3 window=3x4 heads=2 projected=3x3x2x4"),
          ("attention, the batch split", "op=attention mesh=3 split=BATCH:0 "
           "partBATCH=0,1,2,5 n=5 seq=9 window=3x4 heads=2 projected=3x3x2x4")]

# Every rank has all queries, and the keys are in these pieces; or the reverse.
# Windows: all keys; causal ones, of which some ranks see nothing; and ragged
# ones, which differ from query to query.
def everywhere(here, sizes, window, words):
    first = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
    counts = f"seq=7 keys={first[-1]}" if here == "queries" else \
        f"seq={first[-1]} keys=20"
    return (f"op=attention mesh={len(sizes)} split=SEQ:0 here={here} {counts} "
            f"partSEQ={','.join(map(str, first))} "
            f"window={window[0]}x{window[1]} {words}" +
            (" view=whole" if 0 in sizes or "ragged" in words else ""))


NAMED += [(f"attention, {here} on every rank, {'+'.join(map(str, sizes))}, "
           f"window {left},{right}, {name}",
           everywhere(here, sizes, (left, right), words))
          for here, pieces in (
              ("queries", [[17], [10, 10], [11, 11, 10], [20, 1, 3], [12, 0, 12],
                           [0, 24, 0], [3, 3, 3, 9], [4] * 8,
                           [1, 5, 2, 9, 1, 1, 3, 4]]),
              ("keys", [[7], [3, 4], [11, 3, 2], [8, 0, 5], [1, 1, 1, 6],
                        [2] * 8]))
          for sizes in pieces
          for left, right in ((1 << 20, 1 << 20), (1 << 20, 0), (0, 3), (2, 0))
          for name, words in (
              ("residual", "heads=4 sizes=6x6x6 projected=2x2x3x6 residual=1 "
               "repeat=2 n=2 biases=1 open=1"),
              ("one tensor", "heads=3 sizes=4x4x4 projected=4x4x2x0 same=1 "
               "biases=1 adds=1 axes=1x1x1x0 n=3"))]
NAMED += [(f"attention, {here} on every rank, {name}, {type}",
           everywhere(here, sizes, (4, 1 << 20), f"type={type} {words}"))
          for here, sizes in (("queries", [9, 4, 7]), ("keys", [3, 4, 5]))
          for type in ("float", "half", "double", "bfloat16")
          for name, words in (
              ("no projections", "heads=2 n=2"),
              ("256 elements", "heads=8 sizes=256x256x256 projected=32x32x32x256 "
               "scale=0.125 residual=1"),
              ("large scores", "heads=2 n=2 scale=30 projected=4x4x4x4"),
              ("ragged windows", "heads=2 n=2 ragged=7 projected=3x3x2x4"))]
NAMED += [(f"attention, {here} on every rank, as a section says",
           everywhere(here, sizes, (2, 3), "heads=2 n=2 by=section sizes=5x3x3 "
                      "projected=4x4x2x5 residual=1 biases=1"))
          for here, sizes in (("queries", [9, 4, 7]), ("keys", [3, 4, 5]))]
# Only queries that see the key get NaN.
NAMED += [(f"attention, {here} on every rank, key {hole} is NaN",
           everywhere(here, sizes, (2, 3), f"heads=2 n=2 hole={hole} train=0"))
          for here, sizes, hole in (("queries", [9, 4, 7], 5),
                                    ("queries", [9, 4, 7], 9),
                                    ("keys", [3, 4, 5], 5))]

# Padded batches: sequences that end inside a piece, at its border, or with its
# first element; full ones; more keys than queries. Padding is NaN.
PADDED = (([8, 8], "16x8x9", "16x8x9"), ([11, 11, 10], "32x11x1", "32x11x1"),
          ([11, 11, 10], "5x22x23", "7x22x32"), ([20, 1, 3], "21x20x3", "24"),
          ([3, 3, 3, 1], "10x7x2", "10x8x3"), ([4] * 8, "1x17x32", "2x17x32"))
NAMED += [(f"attention, {'+'.join(map(str, sizes))}, lengths {lengths}, "
           f"{name}, {strategy}", attention(
               sizes, window, f"n=3 lengths={lengths} nan=1 klengths="
               f"{'x'.join([klengths] * (1 if 'x' in klengths else 3))} "
               f"strategy={strategy} {words}"))
          for sizes, lengths, klengths in PADDED
          for strategy in ("halo", "gather")
          for name, window, words in (
              ("own key only", (0, 0), "heads=2"),
              ("window 3,7", (3, 7), "heads=2 projected=3x3x2x4 biases=1 "
               "residual=1 adds=1 axes=1x1x1x0 repeat=2"),
              ("causal", (1 << 20, 0), "heads=2 same=1 type=half"),
              ("all", (1 << 20, 1 << 20), "heads=2 projected=3x3x2x0 "
               "type=double"))]
NAMED += [(f"attention by heads, {'+'.join(map(str, sizes))}, lengths "
           f"{lengths}, window {window[0]},{window[1]}, {type}", attention(
               sizes, window, f"n=3 lengths={lengths} klengths={lengths} nan=1 "
               f"strategy=heads heads={len(sizes)} {words} type={type}"))
          for sizes, lengths in (([8, 8], "16x8x9"), ([11, 11, 10], "32x11x1"),
                                 ([20, 1, 3], "21x20x3"),
                                 ([4] * 8, "1x17x32"))
          for type in ("float", "half", "double")
          for window, words in (
              ((3, 7), "sizes=6x6x6 projected=2x2x3x6 residual=1 biases=1"),
              ((1 << 20, 0), "sizes=4x4x4 projected=4x4x2x0 same=1 "
               "axes=1x1x1x0 adds=1 biases=1"))]
NAMED += [("attention, lengths of two beams",
           attention([5, 9], (3, 2), "beam=2 n=2 lengths=14x3x5x6 "
                     "klengths=14x6 nan=1 biases=1 projected=3x3x3x4 "
                     "residual=1")),
          ("attention, lengths, sequence and batch split",
           "op=attention mesh=2x2 split=SEQ:0,BATCH:1 partSEQ=0,7,16 "
           "partBATCH=0,1,3 n=3 window=3x4 heads=2 projected=3x3x2x4 "
           "lengths=16x2x9 klengths=16x2x9 nan=1 biases=1"),
          ("attention, lengths, the batch split",
           "op=attention mesh=3 split=BATCH:0 partBATCH=0,1,2,5 n=5 seq=9 "
           "window=3x4 heads=2 projected=3x3x2x4 lengths=9x1x4x9x3 "
           "klengths=9x1x4x9x3 nan=1")]

# Keys, values, outputs and their gradients are cut in other places than
# queries.
TOKENS2 = "part{0}={1} n=4 seq=24 heads=2 projected=3x3x2x4 residual=1 adds=1"
BY_SEQ = "split=SEQ:0 " + TOKENS2.format("SEQ", "0,11,17,24") + " mesh=3"
BY_BATCH = "split=BATCH:0 " + TOKENS2.format("BATCH", "0,1,3,4") + " mesh=3"
BY_BOTH = ("split=SEQ:0,BATCH:1 partBATCH=0,1,4 " +
           TOKENS2.format("SEQ", "0,11,24") + " mesh=2x2")
SEQ, BATCH = "SEQ:0@0,11,17,24", "BATCH:0@0,1,3,4"
HEADED = "HEAD:0@0,1,2,4"
NAMED += [(f"attention apart, {name}, {type}, window {window}",
           f"op=attention type={type} window={window} {words}")
          for type, window in (("float", "2x7"), ("half", "1048576x0"),
                               ("double", "1048576x1048576"))
          for name, words in (
              ("keys in other rows", f"{BY_SEQ} on.k=SEQ:@0,2,20,24 "
               "on.v=SEQ:@0,2,20,24"),
              ("values in other rows", f"{BY_SEQ} on.v=SEQ:@0,2,20,24"),
              ("keys are values in other rows", f"{BY_SEQ} same=1 "
               "on.k=SEQ:@0,2,20,24"),
              ("outputs in other rows", f"{BY_SEQ} on.o=SEQ:@0,2,20,24 "
               "on.do=-"),
              ("queries SEQ, keys BATCH", f"{BY_SEQ} on.q={SEQ} on.k={BATCH} "
               f"on.v={BATCH} on.o={SEQ} on.do={SEQ}"),
              ("queries BATCH, keys SEQ", f"{BY_BATCH} on.q={BATCH} on.k={SEQ} "
               f"on.v={SEQ} on.o={BATCH} on.do={BATCH}"),
              ("queries SEQ, keys HEAD", f"{BY_SEQ} on.q={SEQ} on.k={HEADED} "
               f"on.v={HEADED} on.o={SEQ} on.do={SEQ}"),
              ("queries HEAD, keys SEQ", f"{BY_SEQ} on.q={HEADED} on.k={SEQ} "
               f"on.v={SEQ} on.o={HEADED} on.do={HEADED}"),
              ("queries SEQ, keys SEQ, outputs BATCH", f"{BY_SEQ} on.q={SEQ} "
               f"on.k={SEQ} on.v={SEQ} on.o={BATCH} on.do={HEADED}"),
              ("keys on every rank", f"{BY_SEQ} on.q={SEQ} on.k=local "
               f"on.v=local on.o={SEQ} on.do={SEQ}"),
              ("outputs on every rank", f"{BY_SEQ} on.o=- on.do=-"),
              ("keys on every rank, the batch split", f"{BY_BATCH} "
               f"on.q={BATCH} on.k=local on.v={BATCH} on.o={BATCH} "
               f"on.do={BATCH}"),
              ("queries along one axis, keys along the other", f"{BY_BOTH} "
               "on.q=SEQ:0@0,11,24 on.k=BATCH:1@0,1,4 on.v=BATCH:1@0,1,4 "
               "on.o=SEQ:0@0,11,24 on.do=SEQ:0@0,11,24"),
              ("queries over both axes, keys over one of them", f"{BY_BOTH} "
               "on.q=SEQ:0+1@0,5,11,20,24 on.k=SEQ:1@0,7,24 "
               "on.v=BATCH:0@0,3,4 on.o=SEQ:0@0,11,24 on.do=local"),
              ("a mesh with its axes swapped", f"{BY_BOTH} on.q=SEQ:0@0,11,24/"
               "BATCH:1@0,1,4 on.k=BATCH:0@0,1,4/SEQ:1@0,2,24 "
               "on.v=BATCH:0@0,1,4/SEQ:1@0,2,24 on.o=local on.do=local"))]

NAMED += [(f"attention apart, {name}, lengths", f"op=attention window=2x7 "
           f"lengths=24x3x12x17 klengths=24x4x12x20 nan=1 {words}")
          for name, words in (
              ("queries SEQ, keys BATCH", f"{BY_SEQ} on.q={SEQ} on.k={BATCH} "
               f"on.v={BATCH} on.o={SEQ} on.do={SEQ}"),
              ("queries BATCH, keys SEQ", f"{BY_BATCH} on.q={BATCH} on.k={SEQ} "
               f"on.v={SEQ} on.o={BATCH} on.do={BATCH}"),
              ("queries SEQ, keys on every rank", f"{BY_SEQ} on.q={SEQ} "
               f"on.k=local on.v=local on.o={SEQ} on.do={SEQ}"))]

# Every rank has the whole context; no piece of the queries is as long as it.
NAMED += [(f"attention apart, a context in a [local] section, {strategy}",
           f"op=attention {BY_SEQ} keys=13 context=13 on.k=- on.v=- on.o=- "
           f"window=1048576x1048576 strategy={strategy}")
          for strategy in ("auto", "gather")]

# Operands of one call that are cut in different places: in other rows or other
# dimensions, or whole on every rank; inputs, and outputs with and without old
# values.
APART = "mesh=3 split=H:0 partH=0,5,9,16 n=2 c=3 size=16x12"
WINDOW = f"{APART} kernel=3x3 stride=1x1 dilation=1x1 pad=1x1 k=2 own_sizes=1"
ROWS, COLUMNS = "H:@0,2,11,16", "W:0@0,5,6,12"
NAMED += [(f"operands apart, {name}", words) for name, words in (
    ("z in other rows", f"op=conv_fused act=relu beta=0.5 {WINDOW} "
     f"on.z={ROWS}"),
    ("y in columns", f"op=conv_forward beta=0.5 {WINDOW} on.y={COLUMNS}"),
    ("y on every rank", f"op=conv_forward {WINDOW} on.y=-"),
    ("y with channels cut", f"op=conv_forward {WINDOW.replace('k=2', 'k=4')} "
     "on.y=C:0@0,1,2,4"),
    ("x in columns, data gradient", f"op=conv_data beta=2 {WINDOW} "
     f"on.dx={COLUMNS}"),
    ("dy in columns, filter gradient", f"op=conv_filter {WINDOW} "
     f"on.dy={COLUMNS}"),
    ("x on every rank, filter gradient", f"op=conv_filter {WINDOW} on.x=-"),
    ("pooling, y in columns", f"op=pool_forward {WINDOW} on.y={COLUMNS}"),
    ("pooling backward, all three", f"op=pool_backward beta=1 {WINDOW} "
     f"on.y={ROWS} on.dy=- on.dx={COLUMNS}"),
    ("softmax backward", f"op=softmax_backward beta=1 {APART} on.dy={ROWS} "
     f"on.dx={COLUMNS}"),
    ("a mean's result", f"op=reduce fn=avg over=H beta=1 {APART} "
     f"on.c={COLUMNS}"),
    ("an index's input", f"op=reduce fn=max over=N indices=1 {APART} "
     f"on.a={ROWS}"),
    ("batch norm, z and y", f"op=bn_training api=ex fuse=add {APART} "
     f"on.z=- on.y={ROWS}"),
    ("batch norm backward", f"op=bn_backward api=norm fuse=add {APART} "
     f"on.dy={COLUMNS} on.y=- on.dz={ROWS}"),
    ("LRN backward", f"op=lrn_backward beta=1 {APART} on.x={COLUMNS} "
     f"on.dx={ROWS}"),
    ("dropout", f"op=dropout {APART} on.y={COLUMNS} on.dy={ROWS}"),
    ("another layout", f"op=transform into=HWNC {APART} on.y={COLUMNS}"),
    *((f"one operand with one row, {what} cut elsewhere",
       "op=op mesh=6 split=W:0 partW=0,4,6,9,15,19,21 n=2 c=3 size=18x21 "
       f"fn=min broad=H own_sizes=1 {on}") for what, on in (
           ("the result", "on.a=- on.c=H:0@0,2,4,5,13,16,18"),
           ("the other operand", "on.c=- on.a=H:0@0,2,4,5,13,16,18"))),
    ("other axes", "op=add mesh=2x2 split=H:0,W:1 partH=0,5,9 partW=0,3,8 "
     "n=4 c=2 size=9x8 on.a=N:0@0,1,4/H:1@0,2,9"),
)]

# The named cases that the families define.
NAMED += [case for family in FAMILIES for case in family.named()]
