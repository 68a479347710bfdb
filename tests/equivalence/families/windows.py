# SPDX-License-Identifier: Apache-2.0
"""What ops with a window share: sizes, where outputs are cut, which inputs each
output uses, periodic dimensions."""
import itertools

import numpy as np


def out_size(n, k, s, d, p):
    return (n + 2 * p - (d * (k - 1) + 1)) // s + 1


def out_sizes(case):
    one = [1] * len(case["size"])
    return [out_size(*words) for words in
            zip(case["size"], case["kernel"], case["stride"],
                case.get("dilation", one), case["pad"])]


def cut_out(first, n, k, s, d, p):
    """Returns where the outputs are cut, given the cut of the inputs: a rank
    owns the outputs whose window's centre it owns."""
    total = out_size(n, k, s, d, p)
    inner = [min(max(-(-(b + p - d * (k - 1) // 2) // s), 0), total)
             for b in first[1:-1]]
    return [0] + inner + [total]


def cut_in(first, n, k, s, d, p):
    """Returns where the `n` inputs are cut, given the cut of the outputs."""
    centre = d * (k - 1) // 2
    return [0] + [min(max(b * s - p + centre, 0), n)
                  for b in first[1:-1]] + [n]


def cuts_out(case):
    """Returns the cut of y in each dimension in which x is cut: as the program
    says (ycut), otherwise by the windows' centres."""
    cut = dict(case["part"])
    for i, dim in enumerate("DHW"[3 - len(case["size"]):]):
        if dim in cut:
            cut[dim] = cut_out(cut[dim], case["size"][i], case["kernel"][i],
                               case["stride"][i],
                               case.get("dilation", [1] * 3)[i],
                               case["pad"][i])
    return {**cut, **case.get("ycut", {})}


def draw_cuts_out(rng, setting, case):
    """Sometimes cuts the outputs where the program chooses, instead of asking
    for their sizes."""
    if setting.view != "shard" or case.get("given") or rng.random() > 0.15:
        return
    case["ycut"], case["own_sizes"] = {}, 1
    for i, dim in enumerate("DHW"[3 - len(case["size"]):]):
        total = out_sizes(case)[i]
        if dim in case["part"] and total >= setting.pieces(dim):
            case["ycut"][dim] = [0] + sorted(rng.sample(
                range(1, total), setting.pieces(dim) - 1)) + [total]


def cuts_in(case):
    """Returns the cut of x, given that of y."""
    cut = dict(case["part"])
    for i, dim in enumerate("DHW"[3 - len(case["size"]):]):
        if dim in cut:
            cut[dim] = cut_in(cut[dim], case["size"][i], case["kernel"][i],
                              case["stride"][i], case["dilation"][i],
                              case["pad"][i])
    return cut


def same_split(a, b):
    return a.cut.keys() == b.cut.keys() and a.axes == b.axes


def meets(case, tensors, mixes):
    """Returns whether the operands can be moved to the cut of one of them so
    that every rank has a part of all others. mixes: every channel of y depends
    on all channels of x."""
    one = [1] * len(case["size"])
    names = "DHW"[3 - len(case["size"]):]
    sides = [[t for t in tensors if t.name in side] for side in
             (("x", "dx"), ("y", "dy", "z"))]

    def full(lead, other, out):
        for dim, first in lead.cut.items():
            if same_split(lead, other):
                continue
            if dim in names:
                i = names.index(dim)
                words = [case[key][i] for key in ("kernel", "stride")] + [
                    case.get("dilation", one)[i], case["pad"][i]]
                first = cut_out(first, case["size"][i], *words) if out else \
                    cut_in(first, case["size"][i], *words)
            if min(b - a for a, b in zip(first, first[1:])) < 1:
                return False
        return True

    # Queries have no z, so z cannot be the one that others are moved to.
    return any(lead.name != "z" and lead.cut and not (mixes and "C" in lead.cut) and
               all(full(lead, other, side == 0) for other in sides[1 - side])
               for side in (0, 1) for lead in sides[side])


def taps_along(n, k, s, d, p):
    """Yields for each place t in the window: t, and the slices of outputs and
    inputs that it connects."""
    for t in range(k):
        shift = t * d - p
        first = max(0, -(shift // s))
        last = min(out_size(n, k, s, d, p), (n - 1 - shift) // s + 1)
        if first < last:
            yield (t, slice(first, last),
                   slice(first * s + shift, (last - 1) * s + shift + 1, s))


def taps(case):
    """Yields the same for all spatial dimensions: tuples of places, of outputs
    and of inputs, in row-major order of the places."""
    one = [1] * len(case["size"])
    along = [list(taps_along(*words)) for words in
             zip(case["size"], case["kernel"], case["stride"],
                 case.get("dilation", one), case["pad"])]
    for tap in itertools.product(*along):
        yield tuple(zip(*tap))


def around(case):
    """Returns for each spatial dimension the rows of padding that wrap around;
    0 if the dimension is not periodic."""
    names = "DHW"[3 - len(case["size"]):]
    return [p if dim in case.get("wrap", "") else 0
            for dim, p in zip(names, case["pad"])]


def unrolled(case):
    """Returns the case with the same windows on an input that rolled() has
    padded."""
    more = around(case)
    return {**case, "pad": [p - m for p, m in zip(case["pad"], more)],
            "size": [n + 2 * m for n, m in zip(case["size"], more)]}


def rolled(case, x):
    return np.pad(x, [(0, 0)] * 2 + [(m, m) for m in around(case)], "wrap")


def folded(case, dx):
    """Reverses rolled() for a gradient: adds padded rows to the rows that they
    are copies of."""
    for axis, m in enumerate(around(case), 2):
        n = dx.shape[axis] - 2 * m
        whole = np.zeros([*dx.shape[:axis], n, *dx.shape[axis + 1:]])
        index = [slice(None)] * dx.ndim
        for i in range(n + 2 * m):
            index[axis] = (i - m) % n
            whole[tuple(index)] += dx.take(i, axis)
        dx = whole
    return dx


def repairable(case):
    """Returns whether the strategy `repair` is possible: each rank needs an
    output whose window, limited to the domain, lies in its piece. The other
    strategies do not need one."""
    out = cuts_out(case)
    for i, dim in enumerate("DHW"[3 - len(case["size"]):]):
        if dim not in case["part"]:
            continue
        x, y = case["part"][dim], out[dim]
        k, s, p = (case[key][i] for key in ("kernel", "stride", "pad"))
        reach = case.get("dilation", [1] * 3)[i] * (k - 1)
        for r in range(len(x) - 1):
            begin = max(y[r], -(-x[r] // s))
            x0 = begin * s
            end = min(y[r + 1],
                      begin + (x[r + 1] - x0 + 2 * p - reach - 1) // s + 1)
            x1 = min(x[r + 1], x0 + (end - begin) * s + reach - 2 * p)
            if not any(max(0, o * s - p) >= x0 and
                       min(x[-1], o * s - p + reach + 1) <= x1
                       for o in range(begin, end)):
                return False
    return True
