# SPDX-License-Identifier: Apache-2.0
"""Pooling: maximum and both averages, forward and backward."""
import numpy as np

from families.family import Family, blend, call, common, old, shape
from families.windows import (cuts_out, draw_cuts_out, folded, meets, out_sizes,
                              repairable, rolled, taps, unrolled)
from tensors import Tensor, eps, math_eps

WORDS = ("mode", "nan", "kernel", "pad", "stride", "alpha", "beta")


class Pooling(Family):
    ops = ("pool_forward", "pool_backward")
    sharded = ops
    moves = ("x", "y", "dx", "dy")
    periodic = merges = True
    lists = {"stride": 1, "pad": 0, "kernel": 1}
    simple = {"mode": "max", "ties": 0, "nan": 0, "holes": 0}

    def words(self, rng, setting, case):
        spatial = len(case["size"])
        case["mode"] = rng.choice(["max", "max", "maxdet", "avgin", "avgex"])
        case.update(kernel=[], stride=[], pad=[])
        for _ in range(spatial):
            k = rng.choice([1, 2, 2, 3, 3, 4, 5][:7 if spatial < 3 else 5])
            case["kernel"].append(k)
            case["stride"].append(rng.choice([1, 2, 2, 3, k, k]))
            case["pad"].append(rng.choice([0, rng.randint(0, k - 1)]))
        case["ties"] = int(rng.random() < 0.5)
        case["nan"] = rng.choice([0, 1])
        case["holes"] = rng.choice([0] * 6 + [1, 2])  # 1: inf, 2: NaN, too

    def recut(self, rng, setting, case):
        # If a window covers all of the split dimensions, each rank computes a
        # part of one output. In the shard view the rules say so.
        if setting.view == "whole" and rng.random() < 0.15:
            thin = rng.random() < 0.3
            for i, dim in enumerate("DHW"[3 - len(case["size"]):]):
                if dim in case["part"] or not thin:
                    case["kernel"][i] = case["size"][i]
                    case["stride"][i], case["pad"][i] = 1, 0
        if setting.pooling:
            for i, _ in split_dims(case):
                case["kernel"][i] = case["size"][i]
                case["stride"][i], case["pad"][i] = 1, 0
        else:
            draw_cuts_out(rng, setting, case)

    def scatter(self, rng, setting, case):
        if not setting.pooling:
            super().scatter(rng, setting, case)

    def legal(self, case):
        return min(out_sizes(case)) >= 1 and \
            ("pooling" in case or not fills_pieces(case)) and \
            all(p < k for p, k in zip(case["pad"], case["kernel"]))

    def tensors(self, case):
        like = common(case)
        y_shape = [case["n"], case["c"]] + out_sizes(case)
        xcut, ycut = case["part"], cuts_out(case)
        if "pooling" in case:  # every rank has the same output
            ycut = {dim: first for dim, first in ycut.items()
                    if dim not in [d for _, d in split_dims(case)]}
        values = "ties" if case["ties"] else "uniform"
        x = Tensor("x", shape(case), cut=xcut, values=values, spread=1, **like)
        if case["op"] == "pool_forward":
            return [x, Tensor("y", y_shape, cut=ycut, values=old(case),
                              out=True, spread=2, **like)]
        return [x, Tensor("y", y_shape, cut=ycut, spread=1, **like),
                Tensor("dy", y_shape, cut=ycut, spread=1, **like),
                Tensor("dx", shape(case), cut=xcut, values=old(case), out=True,
                       spread=2, **like)]

    def derive(self, case, t):
        if case.get("holes"):
            rng = np.random.default_rng(case["seed"])
            for name in set(t) & {"x", "dy"}:
                odd = rng.random(t[name].shape) < \
                    rng.choice([2 / t[name].size, 0.2])
                t[name][odd] = rng.choice([np.inf, -np.inf, np.nan][
                    :1 + case["holes"]], odd.sum())
        if case["op"] == "pool_backward":
            t["y"] = forward(case, t["x"])[0]

    def calls(self, case, local):
        more = {key: case[key] for key in ("own_sizes",) if key in case}
        if "pooling" in case:  # in the call, a rank's window covers its piece
            more["kernel"] = list(case["kernel"])
            for i, _ in split_dims(case):
                more["kernel"][i] = local["x"][i + 2]
        return [call(case["op"], case, local, *WORDS, **more)]

    def meets(self, case, tensors):
        x = next(t for t in tensors if t.name == "x")
        return meets(case, tensors, False) and not fills_pieces(
            {**case, "part": x.cut})

    def reference(self, case, t):
        if case["op"] == "pool_forward":
            return {"y": blend(case, *forward(case, t["x"]), t["y"])}
        value, terms = backward(case, t["x"], t["dy"])
        if "wrap" in case:  # rows around the end are stored first
            terms = terms * eps(case["type"]) / math_eps(case["type"])
        return {"dx": blend(case, value, terms, t["dx"])}

    def exact(self, case):
        # A mean of pieces' means is rounded in another way.
        return case["op"] == "pool_forward" and \
            not (case["mode"] in ("avgin", "avgex") and fills_all(case))

    def strategies(self, case, setting):
        if "pooling" in case:
            return ("auto", "extend")
        if setting.view == "whole" or repairable(case):
            return ("auto", "repair", "extend")
        return ("auto", "extend")


def split_dims(case):
    """Returns (i, name) of the spatial dimensions that are cut."""
    names = "DHW"[3 - len(case["size"]):]
    return [(i, dim) for i, dim in enumerate(names)
            if len(case["part"].get(dim, ())) > 2]


def fills_all(case):
    """Returns whether each window covers all of the cut dimensions."""
    cut = split_dims(case)
    return bool(cut) and all(case["pad"][i] == 0 and
                             case["size"][i] == case["kernel"][i]
                             for i, _ in cut)


def fills_pieces(case):
    """Returns whether each window covers a rank's whole piece. Only the rules
    tell this from a window over the whole (SDG-404)."""
    cut = split_dims(case)
    return bool(cut) and all(
        case["pad"][i] == 0 and
        all(b - a == case["kernel"][i] for a, b in
            zip(case["part"][dim], case["part"][dim][1:])) for i, dim in cut)


def counts(case):
    """Returns the divisor of the average for each output."""
    if case["mode"] == "avgin":
        return np.full(out_sizes(case), float(np.prod(case["kernel"])))
    count = np.zeros(out_sizes(case))
    for _, out, _ in taps(case):
        count[out] += 1
    return count


def largest(case, x):
    """Returns the largest value of each window, and the number of its tap (the
    first one among equals). With nan=1 NaN is larger than any number; otherwise
    NaN is skipped, and the number is -1 if there is nothing else."""
    best = np.full([*x.shape[:2], *out_sizes(case)], -np.inf)
    which = np.full(best.shape, -1)
    for number, (_, out, inside) in enumerate(taps(case)):
        found, so_far = x[(..., *inside)], best[(..., *out)]
        lost, none = np.isnan(found), which[(..., *out)] < 0
        more = ~np.isnan(so_far) & (lost if case.get("nan") else False) | \
            ~lost & (none | (found > so_far))
        which[(..., *out)][more] = number
        so_far[more] = found[more]
    return best, which


def forward(case, x):
    case, x = unrolled(case), rolled(case, x)
    if case["mode"] in ("max", "maxdet"):
        best, _ = largest(case, x)
        return best, abs(best)
    total = [np.zeros([*x.shape[:2], *out_sizes(case)]) for _ in range(2)]
    for _, out, inside in taps(case):
        total[0][(..., *out)] += x[(..., *inside)]
        total[1][(..., *out)] += abs(x[(..., *inside)])
    return [t / counts(case) for t in total]


def backward(case, x, dy):
    outer, case, x = case, unrolled(case), rolled(case, x)
    if case["mode"] in ("max", "maxdet"):
        _, which = largest(case, x)
        share = lambda number, out: np.where(
            which[(..., *out)] == number, dy[(..., *out)], 0)
    else:
        each = dy / counts(case)
        share = lambda number, out: each[(..., *out)]
    total = [np.zeros(x.shape) for _ in range(2)]
    for number, (_, out, inside) in enumerate(taps(case)):
        total[0][(..., *inside)] += share(number, out)
        total[1][(..., *inside)] += abs(share(number, out))
    return [folded(outer, t) for t in total]
