# SPDX-License-Identifier: Apache-2.0
"""Named cases: operands of one call that are cut in different places."""

NAMED = []

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
