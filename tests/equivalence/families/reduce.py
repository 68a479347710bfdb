# SPDX-License-Identifier: Apache-2.0
"""ReduceTensor with every operation and shape, with and without indices;
softmax and its gradient."""
import numpy as np

from families.family import Family, blend, call, common, dims_of, old, shape
from tensors import Tensor

CHOICES = ("min", "max", "amax")
FUNCTIONS = ("add", "mul", *CHOICES, "avg", "norm1", "norm2", "mulnozero")


class Reduction(Family):
    ops = ("reduce",)
    sizes_tell = False
    combines = True
    sharded = ops
    splits = "NCDHW"
    moves = ("a", "c")
    simple = {"fn": "add", "indices": 0, "nan": 0, "holes": 0, "narrow": 1}

    def words(self, rng, setting, case):
        dims = dims_of(case)
        case["fn"] = rng.choice(FUNCTIONS)
        # Letters of the dimensions that are reduced.
        case["over"] = "".join(d for d in dims if rng.random() < 0.5) or "H"
        case["indices"] = int(case["fn"] in CHOICES and rng.random() < 0.4)
        case["nan"] = rng.choice([0, 1])
        case["holes"] = rng.choice([0] * 6 + [1, 2])  # 1: NaN; 2: infinities
        case["narrow"] = int(rng.random() < 0.7)

    def legal(self, case):
        # Only minima and maxima have indices. A dimension must be reduced.
        if case["indices"] and case["fn"] not in CHOICES:
            return False
        return any(n > 1 for dim, n in zip(dims_of(case), shape(case))
                   if dim in case["over"])

    def tensors(self, case):
        dims, cut, like = dims_of(case), case["part"], common(case)
        size = [1 if dim in case["over"] else n
                for dim, n in zip(dims, shape(case))]
        kept = {dim: first for dim, first in cut.items()
                if dim not in case["over"]}
        values = "around1" if case["fn"] == "mul" else \
            "ties" if case["fn"] in (*CHOICES, "mulnozero") else "uniform"
        type = case["type"]
        if not case["narrow"] and type in ("half", "bfloat16"):
            type = "float"
        tensors = [
            Tensor("a", shape(case), cut=cut, values=values, spread=1, **like),
            Tensor("c", size, cut=kept, out=True, spread=2, values="uniform"
                   if case["beta"] else "nothing", **{**like, "type": type})]
        if case["indices"]:
            tensors.append(Tensor("indices", size, dims, cut=kept, out=True,
                                  kind="memory", type="int32", values="ties"))
        return tensors

    def placed(self, case):
        return super().placed({**case, "on.indices": case["on.c"]}
                              if "on.c" in case else case)

    def hard(self, case, kinds):
        return case["fn"] != "mul" or kinds == "cancel"  # products overflow

    def meets(self, case, tensors):
        # Indices cannot be moved, so the input must be moved to the result.
        # That an input is whole on every rank shows only if the result is cut.
        return bool(tensors[1].cut) or not (
            case["indices"] or case.get("on.a") in ("-", "local"))

    def derive(self, case, t):
        rng = np.random.default_rng(case["seed"])
        if case["fn"] == "mulnozero":  # keeps the product within its type
            t["a"] = np.sign(t["a"])
            t["a"][rng.random(t["a"].shape) < 8 / t["a"].size] *= 1.5
        if case["holes"] == 2:
            odd = rng.random(t["a"].shape) < rng.choice([1, 20]) / t["a"].size
            t["a"][odd] = rng.choice([np.inf, -np.inf, np.inf], odd.sum())
        if case["holes"] == 1:
            t["a"][rng.random(t["a"].shape) < 0.1] = np.nan
            if rng.random() < 0.5:  # some results are reduced from NaN alone
                t["a"][:, :, :, : 1 + t["a"].shape[3] // 2] = np.nan

    def calls(self, case, local):
        return [call("reduce", case, local, "fn", "nan", "alpha", "beta")]

    def reference(self, case, t):
        dims, a = dims_of(case), t["a"]
        over = [i for i, dim in enumerate(dims) if dim in case["over"]]
        kept = [i for i in range(len(dims)) if i not in over]
        sets = a.transpose(kept + over).reshape(
            [a.shape[i] for i in kept] + [-1])
        size = t["c"].shape
        with np.errstate(all="ignore"):
            value, terms, which = reduced(case, sets)
            right = {"c": blend(case, value.reshape(size),
                                terms.reshape(size), t["c"])}
        if case["indices"]:
            right["indices"] = (which.reshape(size), 0)
        return right

    def exact(self, case):
        return not any(dim in case["over"] for dim in case["split"]) or \
            bool(case["indices"])


def reduced(case, sets):
    """Returns for each set along the last axis: the result, its terms, and the
    index of the chosen element (None for sums and products)."""
    fn, size = case["fn"], abs(sets)
    if fn in ("add", "avg"):
        count = sets.shape[-1] if fn == "avg" else 1
        return sets.sum(-1) / count, size.sum(-1) / count, None
    if fn == "norm1":
        return size.sum(-1), size.sum(-1), None
    if fn == "norm2":
        value = np.sqrt((sets ** 2).sum(-1))
        return value, value, None
    if fn in ("mul", "mulnozero"):
        value = np.where((sets == 0) & (fn == "mulnozero"), 1, sets).prod(-1)
        return value, abs(value) * sets.shape[-1], None
    key = {"min": -sets, "max": sets, "amax": size}[fn]
    lost = np.isnan(key)
    key = np.where(lost, np.inf if case["nan"] else -np.inf, key)
    which = key.argmax(-1)  # the first among equals
    value = np.take_along_axis(size if fn == "amax" else sets,
                               which[..., None], -1)[..., 0]
    return value, abs(value), np.where(lost.all(-1) & (not case["nan"]), 0,
                                       which)


class Softmax(Family):
    ops = ("softmax_forward", "softmax_backward")
    combines = True
    sharded = ops
    splits = "NCDHW"
    moves = ("x", "y", "dx", "dy")
    simple = {"algo": "accurate", "mode": "instance", "at": 0, "scale": 1,
              "holes": 0}

    def words(self, rng, setting, case):
        case["algo"] = rng.choice(["fast", "accurate", "accurate", "log", "log"])
        case["mode"] = rng.choice(["instance", "channel"])
        case["at"] = int(rng.random() < 0.3)
        if case["at"] and case["op"] == "softmax_backward":
            case["at"] = rng.choice([1, 2])  # dx has the memory of dy or y
        # scale: magnitude of values; holes: 1: some are -inf, 2: also NaN or
        # inf.
        case["scale"] = rng.choice([1, 1, 8, 60, 3000])
        case["holes"] = rng.choice([0, 0, 0, 1, 1, 2])
        if case["op"] == "softmax_backward" or case["algo"] == "fast":
            case["scale"] = min(case["scale"], 8)  # exp overflows in `fast`
            case["holes"] = 0
        if case["op"] == "softmax_backward":  # in dy: 1: inf, 2: NaN
            case["holes"] = rng.choice([0, 0, 0, 1, 2])
        if case["mode"] == "channel":
            case["c"] += rng.randint(0, 20)

    def hard(self, case, kinds):
        return case["op"] == "softmax_forward" or "huge" not in kinds  # y <= 1

    def legal(self, case):
        # 3000 times such values would overflow a half.
        return case["type"] != "half" or case["scale"] < 3000

    def tensors(self, case):
        like = dict(size=shape(case), cut=case["part"], **common(case))
        forward = case["op"] == "softmax_forward"
        inputs, out = (["x"], "y") if forward else (["y", "dy"], "dx")
        if case["at"]:
            at = inputs.pop(-case["at"])
            return [Tensor(out, **like, out=True),
                    Tensor(at, **like, at=out)] + [
                        Tensor(name, **like, spread=1) for name in inputs]
        return [Tensor(name, **like, spread=1) for name in inputs] + [
            Tensor(out, **like, values=old(case), out=True, spread=2)]

    def derive(self, case, t):
        rng = np.random.default_rng(case["seed"])
        if case["op"] == "softmax_backward":
            # Most programs pass normalised values, but any are legal.
            if case["seed"] % 3:
                t["y"] = forward(case, case["scale"] * t["y"])[0]
            if case["holes"]:
                odd = rng.random(t["dy"].shape) < 1 / max(1, t["dy"][0].size)
                t["dy"][odd] = rng.choice([np.inf, -np.inf, np.nan][
                    :1 + case["holes"]], odd.sum())
            if case["at"]:
                t["dx"] = t["dy" if case["at"] == 1 else "y"]
            return
        t["x"] = case["scale"] * t["x"]
        if case["holes"]:
            t["x"][rng.random(t["x"].shape) < 0.2] = -np.inf
            for axis in range(4):  # whole lines, so that shards have only -inf
                line = [slice(None)] * t["x"].ndim
                n = t["x"].shape[axis]
                line[axis] = slice(rng.integers(0, n), rng.integers(0, n + 1))
                if rng.random() < 0.3:
                    t["x"][tuple(line)] = -np.inf
        if case["holes"] == 2:
            odd = rng.random(t["x"].shape) < 0.5 / max(1, t["x"][0].size)
            t["x"][odd] = rng.choice([np.nan, np.inf])
        if case["at"]:
            t["y"] = t["x"]

    def calls(self, case, local):
        return [call(case["op"], case, local, "algo", "mode", "alpha",
                     "beta")]

    def reference(self, case, t):
        with np.errstate(all="ignore"):
            if case["op"] == "softmax_forward":
                return {"y": blend(case, *forward(case, t["x"]), t["y"])}
            return {"dx": blend(case, *backward(case, t["y"], t["dy"]),
                                t["dx"])}

    def exact(self, case):
        return not any(dim in case["split"] for dim in
                       ("C" if case["mode"] == "channel" else "CDHW"))


def axes_of(case):
    return (1,) if case["mode"] == "channel" else \
        tuple(range(1, len(dims_of(case))))


def forward(case, x):
    total = dict(axis=axes_of(case), keepdims=True)
    with np.errstate(all="ignore"):
        rest = x - x.max(**total)
        log_sum = np.log(np.exp(rest).sum(**total))
        log = rest - log_sum
        if case["algo"] == "log":
            return log, 1 + abs(rest) + abs(log_sum)
        y = np.exp(log)
        return y, np.where(y == 0, 0, y * (2 + abs(rest) + abs(log_sum)))


def backward(case, y, dy):
    total = dict(axis=axes_of(case), keepdims=True)
    if case["algo"] == "log":
        return dy - np.exp(y) * dy.sum(**total), \
            abs(dy) + np.exp(y) * (1 + abs(y)) * abs(dy).sum(**total)
    return y * (dy - (y * dy).sum(**total)), \
        abs(y) * (abs(dy) + abs(y * dy).sum(**total))
