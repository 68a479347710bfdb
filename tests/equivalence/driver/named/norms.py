# SPDX-License-Identifier: Apache-2.0
"""Named cases: norms, networks, redistributions, reductions and softmax."""

NAMED = []

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
