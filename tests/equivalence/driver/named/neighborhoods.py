# SPDX-License-Identifier: Apache-2.0
"""Named cases: neighbourhood attention."""
from named.shapes import cut

NAMED = []

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
