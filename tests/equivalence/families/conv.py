# SPDX-License-Identifier: Apache-2.0
"""Convolutions: forward, with bias and activation, and the gradients with
respect to data, filter and bias."""
import numpy as np

from families.family import (Family, blend, call, common, dims_of, old, shape)
from families.windows import (cuts_in, cuts_out, draw_cuts_out, folded,
                              meets, out_sizes, repairable, rolled, taps, unrolled)
from tensors import Tensor, eps, math_eps

WORDS = ("pad", "stride", "dilation", "groups", "flipped", "alpha", "beta")
# cudnnFind...Algorithm exists for these ops; it tries algorithms.
FINDS = ("conv_forward", "conv_data", "conv_filter")
# How much larger rounding is if every partial sum is rounded to half.
HALF = eps("half") / math_eps("half")


class Convolution(Family):
    ops = ("conv_forward", "conv_fused", "conv_data", "conv_filter",
           "conv_bias")
    sharded = ops
    moves = ("x", "y", "z", "dx", "dy")
    periodic = keeps = True
    lists = {"dilation": 1, "stride": 1, "pad": 0, "kernel": 1}
    simple = {"flipped": 0, "groups": 1, "k": 1, "zy": 0, "holes": 0,
              "finds": 0}

    def words(self, rng, setting, case):
        spatial = len(case["size"])
        case.update(kernel=[], stride=[], dilation=[], pad=[])
        for _ in range(spatial):
            k = rng.choice([1, 2, 3, 3, 3, 4, 5, 7][:8 if spatial < 3 else 6])
            d = rng.choice([1, 1, 1, 2, 3])
            case["kernel"].append(k)
            case["dilation"].append(d)
            case["stride"].append(rng.choice([1, 1, 1, 2, 2, 3, 4]))
            case["pad"].append(rng.choice([d * (k - 1) // 2,
                                           rng.randint(0, d * (k - 1) + 1)]))
        case["groups"] = rng.choice([1, 1, 1, 2, 3])
        case["c"] *= case["groups"]
        case["k"] = case["groups"] * rng.randint(1, 4)
        case["flipped"] = int(rng.random() < 0.3)
        case["holes"] = rng.choice([0] * 5 + [1, 1, 2])  # 1: inf, 2: NaN, too
        if case["op"] == "conv_data" and rng.random() < 0.4:
            case["given"] = "dy"  # part cuts dy, as in a transposed convolution
        if case["op"] in FINDS and not setting.keep:
            # 2: tries in the memory of the program, which overwrite the output.
            case["finds"] = rng.choice([0] * 4 + [1, 2 * (not case["beta"])])
        if case["type"] == "half" and rng.random() < 0.2:
            case["sums"] = "half"
        elif case["op"] == "conv_forward" and rng.random() < 0.05:
            # GPUs take int8 with these words only; the results are floats.
            case.update(type="int8", groups=1, flipped=0, gap=0, holes=0,
                        dilation=[1] * spatial, c=4 * rng.randint(1, 2),
                        k=4 * rng.randint(1, 2),
                        order="N" + dims_of(case)[2:] + "C")
        if case["op"] == "conv_fused":
            case["act"] = rng.choice(["relu", "relu", "none"])
            case["zy"] = int(rng.random() < 0.3)
            if case["act"] == "relu":  # relu may turn NaN into 0
                case["holes"] = 0

    recut = staticmethod(draw_cuts_out)

    def scatter(self, rng, setting, case):
        super().scatter(rng, setting, case)
        if self.scattered(case):  # cudnnFind... does not move operands
            case.pop("finds", None)

    def legal(self, case):
        if case["type"] == "int8" and case["op"] != "conv_forward" or \
                "sums" in case and case["type"] != "half":
            return False
        return min(out_sizes(case)) >= 1 and case["c"] % case["groups"] == 0 \
            and case["k"] % case["groups"] == 0

    def tensors(self, case):
        op, like = case["op"], common(case)
        y_shape = [case["n"], case["k"]] + out_sizes(case)
        ones = [1] * len(case["size"])
        if case.get("given") == "dy":
            xcut, ycut = cuts_in(case), case["part"]
        else:
            xcut, ycut = case["part"], cuts_out(case)
        # Channels of x and of the filter may be cut, those of y never.
        ycut = {dim: first for dim, first in ycut.items() if dim != "C"}
        wcut = {dim: first for dim, first in xcut.items()
                if dim == "C" and case["groups"] == 1}

        # int8 operands have float results.
        numbers, made = ({}, {}) if case["type"] != "int8" else \
            ({"values": (-9, 9)}, {"type": "float"})

        def x(name, **more):
            return Tensor(name, shape(case), cut=xcut, **like, **numbers,
                          **more)

        def y(name, **more):
            return Tensor(name, y_shape, cut=ycut, **{**like, **made}, **more)

        last = case["order"][-1] == "C" and \
            case["order"][1:-1] == dims_of(case)[2:]
        w = dict(size=[case["k"], case["c"] // case["groups"]] +
                 case["kernel"], dims=like["dims"], type=case["type"],
                 kind="filter", cut=wcut,
                 order="N" + like["dims"][2:] + "C" if last else "")
        b = dict(size=[1, case["k"]] + ones, dims=like["dims"],
                 type=case["type"])
        if op == "conv_forward":
            return [x("x", spread=0 if numbers else 1),
                    Tensor("w", **w, **numbers),
                    y("y", values=old(case), out=True, spread=2)]
        if op == "conv_fused":
            at = "y" if case["zy"] else None
            return [x("x", spread=1), Tensor("w", **w), Tensor("b", **b),
                    y("y", values="uniform" if at else "nothing", out=True,
                      spread=2 if at else 0), y("z", at=at, spread=2)]
        if op == "conv_data":
            return [y("dy", spread=1), Tensor("w", **w),
                    x("dx", values=old(case), out=True, spread=2)]
        if op == "conv_filter":
            return [x("x", spread=1), y("dy", spread=1),
                    Tensor("dw", **w, values=old(case), out=True,
                           summed=True, added=True)]
        return [y("dy", spread=1),
                Tensor("db", **b, values=old(case), out=True, summed=True)]

    def whole(self, case, dim):
        if case.get("given") != "dy" or dim == "N":
            return super().whole(case, dim)
        return out_sizes(case)[dims_of(case).index(dim) - 2]

    def shorten(self, case, dim):
        super().shorten(case, dim)
        if case.get("given") == "dy" and dim != "N":
            i = dims_of(case).index(dim) - 2
            case["size"][i] -= case["stride"][i] - 1

    def derive(self, case, t):
        make_holes(case, t, {**case["part"], **case.get("ycut", {})})

    def calls(self, case, local):
        words = ("alpha", "beta") if case["op"] == "conv_bias" else WORDS
        more = {key: case[key] for key in ("act", "own_sizes", "sums", "finds")
                if key in case}
        return [call(case["op"], case, local, *words, **more)]

    anywhere = True

    def meets(self, case, tensors):
        return meets(case, tensors, True)

    def reference(self, case, t):
        more = HALF if case.get("sums") == "half" else 1
        return {name: (value, more * terms)
                for name, (value, terms) in self.right(case, t).items()}

    def right(self, case, t):
        op = case["op"]
        if op == "conv_forward":
            value, terms = both(forward, case, t["x"], t["w"])
            return {"y": blend(case, value, terms, t["y"])}
        if op == "conv_data":
            value, terms = both(data_gradient, case, t["dy"], t["w"])
            if "wrap" in case:  # rows around the end are stored first
                terms = terms * eps(case["type"]) / math_eps(case["type"])
            return {"dx": blend(case, value, terms, t["dx"])}
        if op == "conv_filter":
            value, terms = both(filter_gradient, case, t["x"], t["dy"])
            return {"dw": blend(case, value, terms, t["dw"])}
        if op == "conv_bias":
            over = tuple(a for a in range(t["dy"].ndim) if a != 1)
            value, terms = (f(t["dy"]).sum(axis=over, keepdims=True)
                            for f in (np.array, abs))
            return {"db": blend(case, value, terms, t["db"])}
        value, terms = both(forward, case, t["x"], t["w"])
        value, terms = blend(case, value, terms, t["z"])
        value, terms = value + t["b"], terms + abs(t["b"])
        return {"y": (np.maximum(value, 0) if case["act"] == "relu" else value,
                      terms)}

    def pads(self, case):
        return bool(case["holes"])

    def exact(self, case):
        # Rows that wrap around the end are rounded to their type before they
        # are added, and pieces wrap other rows than the whole.
        rounds = case.get("wrap") and case["type"] in ("half", "bfloat16")
        return case["op"] in ("conv_forward", "conv_fused") or \
            case["op"] == "conv_data" and not sends_back(case) and not rounds

    def steady(self, case, setting):
        return setting.view == "shard" or "conv_data" not in self.calls_of(
            case) or not sends_back(case)

    def calls_of(self, case):
        return (case["op"],)

    def strategies(self, case, setting):
        if setting.view == "whole" or repairable(case):
            return ("auto", "repair", "extend", "adjoint")
        return ("auto", "extend", "adjoint")


class Gradients(Convolution):
    """The gradients of the filter and of the data. A call before them writes
    dy, so the halo of dy can be sent during the first gradient."""
    ops = ("conv_gradients",)
    sharded = ops
    moves = ()
    PAIR = ("conv_filter", "conv_data")

    def calls_of(self, case):
        return self.PAIR

    def words(self, rng, setting, case):
        super().words(rng, setting, case)
        case["repeat"] = rng.choice([1, 2, 2, 3])

    def tensors(self, case):
        return list({t.name: t for op in self.PAIR
                     for t in super(Gradients, self).tensors({**case,
                                                              "op": op})
                     }.values())

    def calls(self, case, local):
        local = {**local}
        lines = ["scale y=dy alpha=1"]
        for op in self.PAIR:
            names = {t.name for t in super().tensors({**case, "op": op})}
            lines += super().calls({**case, "op": op},
                                   {name: extent for name, extent in
                                    local.items() if name in names})
        return lines

    def right(self, case, t):
        return {name: value for op in self.PAIR for name, value in
                super(Gradients, self).right({**case, "op": op}, t).items()}


class Step(Gradients):
    """A forward call, then both gradients, which can use the halo of x that the
    forward call fetched."""
    ops = ("conv_step",)
    sharded = ops
    PAIR = ("conv_forward", "conv_filter", "conv_data")


def sends_back(case):
    """Returns whether a rank may compute terms of dx for rows of other ranks,
    which add them."""
    return case.get("strategy", "auto") in ("auto", "adjoint") and \
        case["type"] in ("float", "double")


def make_holes(case, t, cut):
    """Puts a few infinities (with holes=2 also NaN) into one operand: anywhere,
    or if it is not the filter, near the places where it is cut."""
    if not case["holes"]:
        return
    rng = np.random.default_rng(case["seed"])
    name = rng.choice(sorted(set(t) & {"x", "w", "dy"}))
    for _ in range(rng.integers(1, 4)):
        at = [rng.integers(n) for n in t[name].shape]
        for dim, first in cut.items() if name != "w" else ():
            i = dims_of(case).index(dim)
            near = int(rng.choice(first)) + rng.integers(-2, 3)
            if rng.random() < 0.7 and 0 <= near < t[name].shape[i]:
                at[i] = near
        t[name][tuple(at)] = rng.choice([np.inf, -np.inf, np.nan][
            :1 + case["holes"]])


def both(function, case, a, b):
    """Returns a sum of products, and the sum of their magnitudes."""
    return function(case, a, b), function(case, abs(a), abs(b))


def grouped(case, a):
    """Splits the dimension of channels into groups and channels of a group."""
    groups = case["groups"]
    return a.reshape(a.shape[0], groups, a.shape[1] // groups, *a.shape[2:])


def grouped_filter(case, w):
    groups = case["groups"]
    return w.reshape(groups, w.shape[0] // groups, *w.shape[1:])


def places(case):
    """Yields for each tap its place in the filter, and the slices of outputs
    and of inputs that it connects. CUDNN_CONVOLUTION turns the filter round."""
    for tap, out, inside in taps(case):
        if case["flipped"]:
            tap = tuple(k - 1 - t for k, t in zip(case["kernel"], tap))
        yield (..., *tap), (..., *out), (..., *inside)


def forward(case, x, w):
    case, x = unrolled(case), rolled(case, x)
    x, w = grouped(case, x), grouped_filter(case, w)
    y = np.zeros((x.shape[0], case["groups"], w.shape[1], *out_sizes(case)))
    for tap, out, inside in places(case):
        y[out] += np.einsum("ngc...,gkc->ngk...", x[inside], w[tap])
    return y.reshape(y.shape[0], case["k"], *y.shape[3:])


def data_gradient(case, dy, w):
    outer, case = case, unrolled(case)
    dy, w = grouped(case, dy), grouped_filter(case, w)
    dx = np.zeros((dy.shape[0], case["groups"], w.shape[2], *case["size"]))
    for tap, out, inside in places(case):
        dx[inside] += np.einsum("ngk...,gkc->ngc...", dy[out], w[tap])
    return folded(outer, dx.reshape(dx.shape[0], case["c"], *dx.shape[3:]))


def filter_gradient(case, x, dy):
    case, x = unrolled(case), rolled(case, x)
    x, dy = grouped(case, x), grouped(case, dy)
    dw = np.zeros((case["groups"], dy.shape[2], x.shape[2], *case["kernel"]))
    for tap, out, inside in places(case):
        flat = [a.reshape(*a.shape[:3], -1) for a in (dy[out], x[inside])]
        dw[tap] = np.einsum("ngks,ngcs->gkc", *flat)
    return dw.reshape(case["k"], *dw.shape[2:])
