# SPDX-License-Identifier: Apache-2.0
"""Batch normalisation: training with running and saved statistics, inference,
gradients, with an activation and an addition fused; local response
normalisation."""
import numpy as np

from families.family import Family, blend, call, common, dims_of, old, shape
from tensors import Tensor

WORDS = ("mode", "epsilon", "alpha", "beta")


class BatchNorm(Family):
    ops = ("bn_training", "bn_inference", "bn_backward")
    sharded = ops
    splits = "NCDHW"
    moves = ("x", "y", "z", "dx", "dy", "dz")
    simple = {"mode": "spatial", "epsilon": 0.001, "level": 0, "drift": 0,
              "saved": 1, "running": 1, "alpha2": 1, "beta2": 0, "factor": 1,
              "at": 0, "api": "plain", "fuse": "none"}

    def words(self, rng, setting, case):
        number = lambda plain: plain if rng.random() < 0.6 else \
            round(rng.uniform(-2, 2), 3)
        case["mode"] = rng.choice(["spatial", "spatial", "persistent", "each"])
        case["epsilon"] = rng.choice([0.00001, 0.001, 0.01])
        # The mean, which may be large compared with the deviation.
        case["level"] = rng.choice([0, 0, 0, 3, 50, 1000, 10000])
        # How much the mean grows from one end of the tensor to the other.
        case["drift"] = rng.choice([0, 0, 3])
        case["at"] = int(rng.random() < 0.2)
        case["api"] = rng.choice(["plain", "plain", "ex", "norm"])
        case["fuse"] = "none"
        if case["api"] != "plain" and case["op"] != "bn_inference":
            case["fuse"] = rng.choice(["none", "act", "add"])
        if case["fuse"] != "none" and case["op"] == "bn_training":
            case["alpha"], case["beta"] = 1, 0
        if case["op"] == "bn_training":
            case["factor"] = rng.choice([1, 0.5, 0.125, 0])
            case["running"] = int(rng.random() < 0.8)
        if case["op"] != "bn_inference":
            case["saved"] = int(rng.random() < 0.8)
        if case["op"] == "bn_backward":
            case["alpha2"] = number(1)
            case["beta2"] = number(0) if setting.sum == "yes" else 0

    def legal(self, case):
        if case["fuse"] != "none" and (
                case["api"] == "plain" or case["op"] == "bn_inference" or
                case["op"] == "bn_training" and
                (case["alpha"], case["beta"]) != (1, 0)):
            return False
        # A variance needs two elements.
        return case["op"] == "bn_inference" or count(case) > 1

    anywhere = True

    def meets(self, case, tensors):
        # Scales have the channels (or elements) that x has on a rank.
        x = next(t for t in tensors if t.name == "x")
        return "on.x" not in case or case["mode"] != "each" and \
            x.cut.get("C") == case["part"].get("C")

    def exact(self, case):
        # Sums over ranks add in another order than one rank.
        return case["op"] == "bn_inference"

    def tensors(self, case):
        op, like = case["op"], common(case)
        size, cut = shape(case), case["part"]
        each = case["mode"] == "each"
        params = dict(
            size=[1, *size[1:]] if each else
            [1, size[1]] + [1] * len(case["size"]),
            dims=like["dims"],
            cut={dim: first for dim, first in cut.items()
                 if dim == "C" or each and dim != "N"},
            type="double" if case["type"] == "double" else "float")
        level = drifting(case) if case["drift"] else case["level"] or "uniform"
        x = Tensor("x", size, cut=cut, spread=1, values=level, **like)
        inputs = [x, Tensor("scale", values="positive", **params)]
        result = dict(size=size, cut=cut, out=True, **like)

        def written(name, when, values="nothing", summed=False):
            return [Tensor(name, out=True, values=values, summed=summed,
                           **params)] if when else []

        if op == "bn_inference":
            return inputs + [
                Tensor("y", values=old(case), spread=2, **result),
                Tensor("bias", **params),
                Tensor("mean", values=case["level"] or "uniform", **params),
                Tensor("var", values="positive", **params)]
        if op == "bn_training":
            if case["at"]:
                y = [Tensor("y", **{**result, "spread": 1}, values=level)]
                inputs[0] = Tensor("x", size, cut=cut, at="y", **like)
                inputs = y + inputs
            else:
                inputs.append(Tensor("y", values=old(case), spread=2,
                                     **result))
            if case["fuse"] == "add":
                inputs.append(Tensor("z", size, cut=cut, spread=1, **like))
            blend = "uniform" if case["factor"] != 1 else "nothing"
            return inputs + [Tensor("bias", **params)] + \
                written("running_mean", case["running"], blend) + \
                written("running_var", case["running"],
                        "positive" if blend == "uniform" else blend) + \
                written("saved_mean", case["saved"]) + \
                written("saved_inv", case["saved"])
        if case["at"]:
            gradient = [Tensor("dx", spread=1, **result),
                        Tensor("dy", size, cut=cut, at="dx", **like)]
        else:
            gradient = [Tensor("dy", size, cut=cut, spread=1, **like),
                        Tensor("dx", values=old(case), spread=2, **result)]
        before = "uniform" if case["beta2"] else "nothing"
        if case["fuse"] != "none":
            gradient.append(Tensor("y", size, cut=cut, values="ties", spread=1,
                                   **like))
        if case["fuse"] == "add":
            gradient.append(Tensor("dz", **{**result, "values": "nothing",
                                            "spread": 2}))
        saved = [Tensor("saved_mean", **params),
                 Tensor("saved_inv", **params)] if case["saved"] else []
        return inputs + gradient + saved + \
            written("dscale", True, before, True) + \
            written("dbias", True, before, True)

    def derive(self, case, t):
        if case["op"] == "bn_backward" and case["saved"]:
            t["saved_mean"], var = statistics(case, t["x"])
            t["saved_inv"] = 1 / np.sqrt(var + case["epsilon"])

    def calls(self, case, local):
        more = {"bn_training": ("factor",), "bn_backward": ("alpha2", "beta2")}
        keys = (*WORDS, "api", "fuse", *more.get(case["op"], ()))
        line = call(case["op"], case, local, *keys)
        # Steps of a program differ in the factor alone. A call with factor 0
        # before this one does not change the running statistics.
        if case["op"] == "bn_training" and case["running"] and \
                case["factor"] not in (0, 1) and not case["at"] and \
                not case["beta"]:
            return [call(case["op"], {**case, "factor": 0}, local, *keys), line]
        return [line]

    def reference(self, case, t):
        x = t["x"]
        if case["op"] == "bn_inference":
            mean, inv = t["mean"], 1 / np.sqrt(t["var"] + case["epsilon"])
            return {"y": blend(case, *normalised(t, x, mean, inv, 1), t["y"])}
        if case["op"] == "bn_backward" and case["saved"]:
            mean, inv = t["saved_mean"], t["saved_inv"]
        else:
            mean, var = statistics(case, x)
            inv = 1 / np.sqrt(var + case["epsilon"])
        # Rounding of x, relative to the deviation.
        axes = axes_of(case)
        level = abs(x).max(axis=axes, keepdims=True) * inv + 1
        if case["op"] == "bn_backward":
            return gradients(case, t, x, mean, inv, level)
        y, terms = normalised(t, x, mean, inv, level)
        if case["fuse"] == "add":
            y, terms = y + t["z"], terms + abs(t["z"])
        if case["fuse"] != "none":
            y = np.maximum(y, 0)
        found = {"y": blend(case, y, terms, t["y"])}
        m = count(case)
        near = abs(x).max(axis=axes, keepdims=True)
        if case["saved"]:
            found["saved_mean"] = mean, near
            found["saved_inv"] = inv, inv * level
        if case["running"]:
            f = case["factor"]
            unbiased = var * m / (m - 1)
            for name, new, terms in (("mean", mean, near), (
                    "var", unbiased, (unbiased + case["epsilon"]) * level)):
                before = t["running_" + name]
                keep = (1 - f) * before if f != 1 else 0
                found["running_" + name] = (keep + f * new,
                                            abs(keep) + f * terms)
        return found


def drifting(case):
    """Returns values whose mean grows from one corner to the other."""
    size = shape(case)
    along = sum(np.linspace(0, case["drift"], n).reshape(
        [-1 if d == i else 1 for d in range(len(size))])
        for i, n in enumerate(size) if i != 1)
    noise = np.random.default_rng(case["seed"]).uniform(-1, 1, size)
    return case["level"] + along + noise


def axes_of(case):
    """Returns the dimensions that the statistics reduce."""
    if case["mode"] == "each":
        return (0,)
    return (0, *range(2, len(dims_of(case))))


def count(case):
    size = shape(case)
    return int(np.prod([size[a] for a in axes_of(case)]))


def statistics(case, x):
    axes = axes_of(case)
    return x.mean(axis=axes, keepdims=True), x.var(axis=axes, keepdims=True)


def normalised(t, x, mean, inv, level):
    scaled = (x - mean) * inv * t["scale"]
    terms = (abs(x) + abs(mean)) * inv * abs(t["scale"]) + \
        abs(scaled) * level + abs(t["bias"])
    return scaled + t["bias"], terms


def gradients(case, t, x, mean, inv, level):
    axes, m = axes_of(case), count(case)
    dy = t["dy"] if case["fuse"] == "none" else t["dy"] * (t["y"] > 0)
    sum_of = lambda a: a.sum(axis=axes, keepdims=True)
    out = (x - mean) * inv
    out_terms = (abs(x) + abs(mean)) * inv + abs(out) * level
    dbias, dbias_terms = sum_of(dy), sum_of(abs(dy))
    dscale, dscale_terms = sum_of(dy * out), sum_of(abs(dy) * out_terms)
    dx = t["scale"] * inv * (dy - (dbias + out * dscale) / m)
    dx_terms = abs(t["scale"]) * inv * level * (
        abs(dy) + (dbias_terms + abs(out) * dscale_terms +
                   out_terms * abs(dscale)) / m)
    second = {"alpha": case["alpha2"], "beta": case["beta2"]}
    through = {"dz": (dy, abs(dy))} if case["fuse"] == "add" else {}
    return {"dx": blend(case, dx, dx_terms, t["dx"]), **through,
            "dscale": blend(second, dscale, dscale_terms, t["dscale"]),
            "dbias": blend(second, dbias, dbias_terms, t["dbias"])}


class ResponseNorm(Family):
    ops = ("lrn_forward", "lrn_backward")
    sharded = ops
    moves = ("x", "y", "dx", "dy")
    anywhere = True
    simple = {"window": 5, "at": 0}

    def words(self, rng, setting, case):
        case["window"] = rng.randint(1, 7)
        case["at"] = int(case["op"] == "lrn_forward" and rng.random() < 0.2)

    def tensors(self, case):
        like = dict(size=shape(case), cut=case["part"], **common(case))
        forward = case["op"] == "lrn_forward"
        if case["at"]:
            return [Tensor("y", out=True, spread=1, **like),
                    Tensor("x", at="y", **like)]
        return [Tensor(name, spread=1, **like)
                for name in (["x"] if forward else ["y", "dy", "x"])] + [
            Tensor("y" if forward else "dx", values=old(case), out=True,
                   spread=2, **like)]

    def derive(self, case, t):
        if case["op"] == "lrn_backward":
            t["y"] = t["x"] * sizes(case, t["x"]) ** -LRN_BETA

    def calls(self, case, local):
        return [call(case["op"], case, local, "window", "alpha", "beta",
                     lrn_alpha=LRN_ALPHA, lrn_beta=LRN_BETA, lrn_k=LRN_K)]

    def reference(self, case, t):
        x = t["x"]
        s = sizes(case, x)
        if case["op"] == "lrn_forward":
            y = x * s ** -LRN_BETA
            return {"y": blend(case, y, 4 * abs(y), t["y"])}
        direct = t["dy"] * s ** -LRN_BETA
        # What a channel contributes to the channels whose window contains it.
        through = t["dy"] * x * s ** (-LRN_BETA - 1)
        factor = 2 * LRN_ALPHA * LRN_BETA / case["window"]
        dx = direct - factor * x * around(case, through, True)
        terms = abs(direct) + factor * abs(x) * around(case, abs(through), True)
        return {"dx": blend(case, dx, 8 * terms, t["dx"])}


LRN_ALPHA, LRN_BETA, LRN_K = 0.5, 0.75, 2.0


def around(case, values, reverse=False):
    """Returns for each channel the sum over its window of channels; reverse:
    over the channels whose window contains it."""
    n, channels = case["window"], case["c"]
    before = (n - 1) // 2
    after = n - 1 - before
    if reverse:
        before, after = after, before
    return np.stack([values[:, max(0, c - before):c + after + 1].sum(axis=1)
                     for c in range(channels)], axis=1)


def sizes(case, x):
    return LRN_K + LRN_ALPHA / case["window"] * around(case, x * x)
