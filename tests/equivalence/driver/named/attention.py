# SPDX-License-Identifier: Apache-2.0
"""Named cases: attention on sequences."""

NAMED = []

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
