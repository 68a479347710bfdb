# SPDX-License-Identifier: Apache-2.0
"""ReduceTensor, every operation and shape, with indices; softmax and its
gradient."""
import numpy as np

from families.family import Family, blend, call, common, dims_of, old, shape
from tensors import Tensor

FUNCTIONS = ["add", "mul", "min", "max", "amax", "avg", "norm1", "norm2",
             "mulnozero"]
CHOOSE = ("min", "max", "amax")


class Reduction(Family):
    ops = ("reduce",)
    combines = True
    sharded = ops
    splits = "NCDHW"
    simple = {"fn": "add", "indices": 0, "ties": 0}

    def words(self, rng, setting, case):
        dims = dims_of(case)
        case["fn"] = rng.choice(FUNCTIONS)
        # Letters of the dimensions that become 1.
        case["over"] = rng.choice([dims, dims[0] + dims[2:], "C"] + [
            "".join(d for d in dims if rng.random() < 0.5) or "W"] * 3)
        case["indices"] = int(case["fn"] in CHOOSE and rng.random() < 0.5)
        case["ties"] = int(rng.random() < 0.5)

    def legal(self, case):
        # Something must become less; and where is the largest, not the sum.
        if case["indices"] and case["fn"] not in CHOOSE:
            return False
        return any(n > 1 for dim, n in zip(dims_of(case), shape(case))
                   if dim in case["over"])

    def tensors(self, case):
        like, cut = common(case), case["part"]
        size = [1 if dim in case["over"] else n
                for dim, n in zip(like["dims"], shape(case))]
        left = {dim: first for dim, first in cut.items()
                if dim not in case["over"]}
        values = "ties" if case["ties"] else \
            "around1" if case["fn"] in ("mul", "mulnozero") else "uniform"
        c = dict(size=size, cut=left, out=True)
        tensors = [Tensor("a", shape(case), cut=cut, spread=1, values=values,
                          **like),
                   Tensor("c", values=old(case), spread=2, **c, **like)]
        if case["indices"]:
            tensors.append(Tensor("indices", kind="memory", type="int32",
                                  dims=like["dims"], values="ties", **c))
        return tensors

    def calls(self, case, local):
        return [call("reduce", case, local, "fn", "alpha", "beta")]

    def reference(self, case, t):
        a, fn = t["a"], case["fn"]
        axes = tuple(i for i, dim in enumerate(dims_of(case))
                     if dim in case["over"])
        sum_of = lambda values: values.sum(axis=axes, keepdims=True)
        found = {}
        if fn in CHOOSE:
            key = {"min": np.negative, "max": np.array, "amax": abs}[fn](a)
            value = key.max(axis=axes, keepdims=True)
            value, terms = -value if fn == "min" else value, abs(value)
            if case["indices"]:
                # The first of equals, counted in the reduced dimensions.
                last = np.moveaxis(key, axes, range(-len(axes), 0))
                where = last.reshape(*last.shape[:-len(axes)], -1).argmax(-1)
                found["indices"] = where.reshape(value.shape), 0
        elif fn in ("mul", "mulnozero"):
            factor = np.where(a == 0, 1, a) if fn == "mulnozero" else a
            value = factor.prod(axis=axes, keepdims=True)
            terms = abs(value) * a.size / value.size
        elif fn == "norm2":
            value = np.sqrt(sum_of(a * a))
            terms = value
        else:
            n = a.size / np.prod(t["c"].shape) if fn == "avg" else 1
            value = sum_of(abs(a) if fn == "norm1" else a) / n
            terms = sum_of(abs(a)) / n
        return {"c": blend(case, value, terms, t["c"]), **found}

    def exact(self, case):
        plain = case["alpha"] == 1 and case["beta"] == 0
        return case["fn"] in CHOOSE and plain or \
            not set(case["over"]) & set(case["part"])


class Softmax(Family):
    ops = ("softmax_forward", "softmax_backward")
    combines = True
    sharded = ops
    splits = "NCDHW"
    simple = {"algo": "accurate", "mode": "channel", "at": 0, "wide": 0}

    def words(self, rng, setting, case):
        case["algo"] = rng.choice(["fast", "accurate", "accurate", "log"])
        case["mode"] = rng.choice(["instance", "channel"])
        case["at"] = int(rng.random() < 0.3)
        # Values whose exponentials overflow, but for the fast algorithm.
        case["wide"] = int(case["algo"] != "fast" and rng.random() < 0.4)

    def tensors(self, case):
        like, cut, size = common(case), case["part"], shape(case)
        result = dict(size=size, cut=cut, out=True, **like)
        if case["op"] == "softmax_forward":
            values = "wide" if case["wide"] else "uniform"
            if case["at"]:
                return [Tensor("y", spread=1, values=values, **result),
                        Tensor("x", size, cut=cut, at="y", **like)]
            return [Tensor("x", size, cut=cut, spread=1, values=values, **like),
                    Tensor("y", values=old(case), spread=2, **result)]
        y = Tensor("y", size, cut=cut, spread=1, **like)
        if case["at"]:
            return [y, Tensor("dx", spread=1, **result),
                    Tensor("dy", size, cut=cut, at="dx", **like)]
        return [y, Tensor("dy", size, cut=cut, spread=1, **like),
                Tensor("dx", values=old(case), spread=2, **result)]

    def derive(self, case, t):
        if case["op"] == "softmax_backward":
            t["y"] = forward(case, t["y"] * (50 if case["wide"] else 1))[0]

    def calls(self, case, local):
        return [call(case["op"], case, local, "algo", "mode", "alpha", "beta")]

    def reference(self, case, t):
        if case["op"] == "softmax_forward":
            return {"y": blend(case, *forward(case, t["x"]), t["y"])}
        y, dy = t["y"], t["dy"]
        sum_of = lambda a: a.sum(axis=axes_of(case), keepdims=True)
        if case["algo"] == "log":
            y = np.exp(y)
            value, terms = dy - y * sum_of(dy), \
                abs(dy) + y * sum_of(abs(dy)) * (1 + abs(t["y"]))
        else:
            value = y * (dy - sum_of(dy * y))
            terms = y * (abs(dy) + sum_of(abs(dy) * y))
        return {"dx": blend(case, value, terms, t["dx"])}

    def exact(self, case):
        over = {dims_of(case)[a] for a in axes_of(case)}
        return not over & set(case["part"])


def axes_of(case):
    return (1,) if case["mode"] == "channel" else \
        tuple(range(1, len(dims_of(case))))


def forward(case, x):
    axes = axes_of(case)
    most = x.max(axis=axes, keepdims=True)
    power = np.exp(x - most)
    total = power.sum(axis=axes, keepdims=True)
    near = abs(x) + abs(most)
    if case["algo"] == "log":
        return x - most - np.log(total), near + np.log(total) + 1
    value = power / total
    return value, value * (2 + near + (value * near).sum(axis=axes,
                                                         keepdims=True))
