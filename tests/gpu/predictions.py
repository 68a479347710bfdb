# SPDX-License-Identifier: Apache-2.0
"""What was expected of an H100 before any was at hand, beside what the stages of
tests/gpu/run measure: a convolution 3x3, 64 channels, 1024 x 1024, half.

Each row: what, the expectation, the stage whose lines have it (None: needs
several GPUs, each with a rank of its own), and a pattern whose group is the
measured value.
"""
import re

US = r"([\d.]+) us"
CALLER = r".*caller's ([\d.]+)"
PREDICTIONS = [
    ("the whole call, NHWC, on the GPU", "120 to 140 us", "pieces",
     r"^forward, NHWC, algorithm 1, whole: " + US),
    ("the whole call, NHWC, the caller's time", "40 to 45 us", "pieces",
     r"^forward, NHWC, algorithm 1, whole:" + CALLER),
    ("the same with algorithm 0, the caller's time", "13 to 18 us", "pieces",
     r"^forward, NHWC, algorithm 0, whole:" + CALLER),
    ("the whole call, NCHW, on the GPU", "more by two passes over x and y",
     "pieces", r"^forward, NCHW, algorithm 1, whole: " + US),
    ("the whole call, 2 bytes off, on the GPU", "slower: no tensor cores",
     "pieces", r"^forward, NHWC, algorithm 1, whole, 2 bytes off: " + US),
    ("all rows but two, in place, on the GPU", "as the whole call", "pieces",
     r"^forward, NHWC, algorithm 1, all rows but two, in place: " + US),
    ("a strip of two rows, the caller's time", "27 to 39 us", "pieces",
     r"^forward, NHWC, algorithm 1, strip of two rows:" + CALLER),
    ("gradient of data, NCHW, a range of rows", "refused", "pieces",
     r"^gradient of data, NCHW, algorithm 1, all rows but two, in place: (.*)"),
    ("gradient of the filter, NCHW, a range of rows", "accepted for dy alone",
     "pieces", r"^gradient of filter, NCHW, algorithm 1, all rows but two, "
     r"in place: (.*)"),
    ("an exchange, blocking, the caller's time", "less than non-blocking",
     "nccl", r"^\d+ ranks[^:]*: 4 KiB to the next rank, blocking:" + CALLER),
    ("an exchange, non-blocking, the caller's time",
     "17 to 22 us more than blocking", "nccl",
     r"^\d+ ranks[^:]*: 4 KiB to the next rank, non-blocking:" + CALLER),
    ("NCCL enqueued behind a convolution ends", "after the convolution",
     "overlap", r"^two rows by NCCL, as it comes, enqueued behind.*?: (.*)"),
    ("NCCL of highest priority, enqueued before, ends",
     "before the convolution", "overlap",
     r"^two rows by NCCL, highest .* enqueued before.*?: (.*)"),
    ("a copy engine beside a convolution ends", "before the convolution",
     "overlap", r"^two rows by a copy engine.* enqueued behind.*?: (.*)"),
    ("columns of 2 bytes", "cudnnTransformTensor is faster", "overlap",
     r"^\d+ rows of 2 bytes: (.*)"),
    ("columns of 64 bytes, from which on SUNDOG_COST copies by the runtime",
     "cudnnTransformTensor as int8 is no faster", "overlap",
     r"^\d+ rows of 64 bytes: (.*)"),
    ("cudnnTransformTensor, the caller's time", "0.5 us", "overlap",
     r"rows of 2 bytes:.*cudnnTransformTensor.*caller ([\d.]+)"),
    ("4 copies of two rows, NCHW, one by one, the caller's time",
     "8 to 12 us", "overlap", r"^4 copies of two rows.*one by one.*?caller "
     r"([\d.]+)"),
    ("the same as one graph (SUNDOG_REPLAY), the caller's time", "4 to 6 us",
     "overlap", r"^4 copies of two rows.*one graph.*caller ([\d.]+)"),
    ("the same as one graph, on the GPU", "not more than one by one",
     "overlap", r"^4 copies of two rows, NCHW: (.*)"),
    ("repair on an inner rank of four, NHWC, the caller's time",
     "200 to 220 us with one call for each strip; now one for both", None, ""),
    ("repair on an inner rank of four, NHWC, on the GPU", "57 to 70 us", None,
     ""),
    ("repair on an inner rank of four, NCHW, on the GPU", "110 to 130 us",
     None, ""),
    ("extend on an inner rank of four, NHWC, the caller's time",
     "105 to 115 us", None, ""),
    ("extend on an inner rank of four, NHWC, on the GPU", "55 to 60 us", None,
     ""),
]


def measured(stage, pattern, rows):
    """rows: (stage, verdict, why, lines, seconds). Returns the value, or None
    if no line has it."""
    for name, _, _, lines, _ in rows:
        for line in lines if name == stage else []:
            found = re.search(pattern, line)
            if found:
                return found.group(1)
    return None


def table(rows):
    """Returns the lines of a table of all predictions."""
    return ["| prediction | expected | measured |", "|---|---|---|",
            *(f"| {what} | {expected} | "
              f"{measured(stage, pattern, rows) or 'not measured'} |"
              for what, expected, stage, pattern in PREDICTIONS)]
