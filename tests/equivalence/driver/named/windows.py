# SPDX-License-Identifier: Apache-2.0
"""Named cases: convolutions and pooling."""
from cases import NARROW
from named.shapes import cube, cut, line, mesh2d, square

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
    *((f"infinities near inner borders and ends, {what}",
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
