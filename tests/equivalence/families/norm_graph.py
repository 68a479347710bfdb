# SPDX-License-Identifier: Apache-2.0
"""Normalisations as operation graphs: over rows (layer, RMS, adaptive layer
norm) and over planes (instance and batch norm); training, inference and
gradients."""
import numpy as np

from families.family import Family, call, common, dims_of, shape
from tensors import Tensor

ROWS = ("layer", "rms", "ada")


class NormGraph(Family):
    """Words of a case:
    mode: layer, rms, ada, instance or batch.
    all: rows are all dimensions but N; else the channels.
    scaled, biased, running: there is a scale, a bias, running statistics.
    level: the mean, which may be large compared with the deviation.
    at: the result is written over x, or dx over dy, in the same memory.
    swings: before each execution there is one with other numbers by value."""
    ops = sharded = ("norm_graph_training", "norm_graph_inference",
                     "norm_graph_backward")
    splits = "NCDHW"
    combines = True
    simple = {"mode": "layer", "all": 0, "scaled": 1, "biased": 1, "level": 0,
              "running": 0, "factor": 0.125, "epsilon": 0.001, "at": 0,
              "swings": 0}

    def words(self, rng, setting, case):
        case["mode"] = rng.choice([*ROWS, "instance", "batch"])
        case["all"] = int(case["mode"] in ROWS and rng.random() < 0.4)
        case["scaled"] = int(rng.random() < 0.8 or
                             case["mode"] in ("ada", "batch"))
        case["biased"] = int(case["scaled"] and rng.random() < 0.7)
        case["level"] = rng.choice([0, 0, 0, 3, 50])
        case["running"] = int(case["mode"] == "batch" and
                              case["op"] == "norm_graph_training" and
                              rng.random() < 0.6)
        case["factor"] = rng.choice([0.125, 0.5, 1])
        case["epsilon"] = rng.choice([0.001, 0.01, 0.00001])
        case["at"] = int(rng.random() < 0.2)
        case["swings"] = int(not case["at"] and rng.random() < 0.3)
        case["alpha"], case["beta"], case["gap"] = 1, 0, 0
        if case["type"] == "double":
            case["type"] = "float"
        plain = "NCDHW" if len(case["order"]) == 5 else "NCHW"
        case["order"] = rng.choice([plain, plain[0] + plain[2:] + "C"])

    def recut(self, rng, setting, case):
        """Engines take multiples of 8 channels, in pieces, too."""
        pieces = setting.pieces("C")
        if "C" in case["part"]:
            eighths = pieces + rng.randint(0, 3)
            case["c"] = 8 * eighths
            case["part"]["C"] = [0, *(8 * at for at in sorted(rng.sample(
                range(1, eighths), pieces - 1))), 8 * eighths]

    def relay(self, rng, case):
        """The vendor's engines take few layouts."""

    def legal(self, case):
        if case["mode"] in ROWS:  # without it, statistics tell what is x's
            if not case["scaled"] and (case["mode"] == "ada" or
                                       case["op"] == "norm_graph_inference"):
                return False
        elif case["all"]:
            return False
        if case["biased"] and not case["scaled"] or case["running"] and (
                case["mode"] != "batch" or
                case["op"] != "norm_graph_training"):
            return False
        if case["mode"] in ("batch", "instance") and not case["scaled"]:
            return False
        if case["swings"] and case["at"]:
            return False
        # A variance of one element is 0, and so is what it divides.
        return count(case) > 1

    def valid(self, case, setting):
        cut = {dim for dim in setting.split if setting.pieces(dim) > 1}
        over = {d for i, d in enumerate(dims_of(case)) if i in axes_of(case)}
        if case["mode"] in ROWS and cut & over:
            return False  # refused
        return (case["mode"] != "ada" or rows_of(case) > 1) and \
            super().valid(case, setting)

    def exact(self, case):
        return False

    def named(self):
        return named_cases()

    def tensors(self, case):
        op, like, cut = case["op"], common(case), case["part"]
        size, dims = shape(case), like["dims"]
        axes = axes_of(case)

        def param(name, keep, **more):
            return Tensor(name, [n if i in keep else 1
                                 for i, n in enumerate(size)], dims, "float",
                          cut={dim: first for dim, first in cut.items()
                               if dims.index(dim) in keep}, **more)

        def statistics(name, **more):
            return param(name, set(range(len(size))) - set(axes), **more)

        def channels(name, **more):
            return param(name, scaled_of(case), **more)

        made = {"values": "nothing", "out": True}
        result = dict(size=size, cut=cut, **like)
        x = dict(size=size, cut=cut, values=case["level"] or "uniform", **like)
        back = op == "norm_graph_backward"
        if case["at"]:
            at = {"at": "dx" if back else "y"}
            first = Tensor(at["at"], **{**(result if back else x), "out": True})
            found = [first, Tensor("x", **x) if back else
                     Tensor("x", **{**x, **at})]
            found += [Tensor("dy", **{**result, **at})] if back else []
        else:
            found = [Tensor("x", spread=1, **x)]
            found += [Tensor("dy", spread=1, **result)] if back else []
            found.append(Tensor("dx" if back else "y", **{**result, **made}))
        if case["scaled"]:
            found.append(channels("scale", values="positive"))
        if back and case["scaled"]:
            found.append(channels("dscale", summed=True, **made))
            found += [channels("dbias", summed=True, **made)] * case["biased"]
        elif case["biased"]:
            found.append(channels("bias"))
        if op == "norm_graph_inference" and case["mode"] != "batch":
            return found
        written = made if op == "norm_graph_training" else {}
        if case["mode"] != "rms":
            found.append(statistics("mean", **written))
        found.append(statistics("inverse", **{"values": "positive", **written}))
        if case["running"]:
            found += [statistics("old_mean"),
                      statistics("old_var", values="positive"),
                      statistics("new_mean", **made),
                      statistics("new_var", **made)]
        return found

    def derive(self, case, t):
        if case["op"] == "norm_graph_backward":
            mean, var = moments(case, t["x"])
            t["inverse"] = 1 / np.sqrt(var + case["epsilon"])
            if "mean" in t:
                t["mean"] = mean

    def calls(self, case, local):
        return [call(case["op"], case, local, "mode", "epsilon", "factor",
                     "swings")]

    def reference(self, case, t):
        x = t["x"]
        mean, var = moments(case, x)
        inverse = 1 / np.sqrt(var + case["epsilon"])
        given = case["op"] == "norm_graph_backward" or \
            case["op"] == "norm_graph_inference" and case["mode"] == "batch"
        if given:
            mean, inverse = t.get("mean", 0), t["inverse"]
        # Rounding of x, relative to the deviation.
        level = abs(x).max(axis=axes_of(case), keepdims=True) * inverse + 1
        out = (x - mean) * inverse
        out_terms = (abs(x) + abs(mean)) * inverse + abs(out) * level
        scale = t.get("scale", 1)
        if case["op"] == "norm_graph_backward":
            return gradients(case, t, out, out_terms, inverse, level, scale)
        bias = t.get("bias", 0)
        found = {"y": (out * scale + bias, out_terms * abs(scale) + abs(bias))}
        if given:
            return found
        near = abs(x).max(axis=axes_of(case), keepdims=True)
        found.update(mean=(mean, near), inverse=(inverse, inverse * level))
        if case["running"]:
            m, f = count(case), case["factor"]
            unbiased = var * m / (m - 1)
            for name, new, terms in (
                    ("mean", mean, near),
                    ("var", unbiased, (unbiased + case["epsilon"]) * level)):
                old = t["old_" + name]
                found["new_" + name] = (old + f * (new - old),
                                        abs(old) + f * (terms + abs(old)))
        return {name: pair for name, pair in found.items() if name in t}


def axes_of(case):
    """Returns the dimensions that one mean is of."""
    rest = range(2, len(dims_of(case)))
    return {"batch": (0, *rest), "instance": tuple(rest)}.get(
        case["mode"], (1, *rest) if case["all"] else (1,))


def scaled_of(case):
    """Returns the dimensions along which there are several scales."""
    own = {1} if case["mode"] in ("batch", "instance") else set(axes_of(case))
    return own | ({0} if case["mode"] == "ada" else set())


def rows_of(case):
    """Returns the least number of a sample's rows on a rank. Engines take no
    adaptive norm of one."""
    rows = 1
    for i, dim in enumerate(dims_of(case)):
        first = case["part"].get(dim, [0, shape(case)[i]])
        if i > 1 and i not in axes_of(case):
            rows *= min(b - a for a, b in zip(first, first[1:]))
    return rows


def count(case):
    return int(np.prod([shape(case)[a] for a in axes_of(case)]))


def moments(case, x):
    """Returns the mean and the variance; RMS norms have no mean."""
    axes = axes_of(case)
    if case["mode"] == "rms":
        return np.zeros(1), (x * x).mean(axis=axes, keepdims=True)
    return x.mean(axis=axes, keepdims=True), x.var(axis=axes, keepdims=True)


def gradients(case, t, out, out_terms, inverse, level, scale):
    axes, m, dy = axes_of(case), count(case), t["dy"]
    mean = lambda a: a.sum(axis=axes, keepdims=True) / m
    slope = dy * scale
    along, along_terms = mean(slope * out), mean(abs(slope) * out_terms)
    shift, shift_terms = mean(slope), mean(abs(slope))
    if case["mode"] == "rms":
        shift = shift_terms = 0
    dx = inverse * (slope - shift - out * along)
    terms = inverse * level * (abs(slope) + shift_terms +
                               abs(out) * along_terms + out_terms * abs(along))
    found = {"dx": (dx, terms)}
    others = tuple(set(range(dy.ndim)) - scaled_of(case))
    sum_of = lambda a: a.sum(axis=others, keepdims=True)
    found["dscale"] = sum_of(dy * out), sum_of(abs(dy) * out_terms)
    found["dbias"] = sum_of(dy), sum_of(abs(dy))
    return {name: pair for name, pair in found.items() if name in t}


def named_cases():
    cases = []
    for n, words in (
            ("layer", "mesh=3 split=H:0 partH=0,1,4,5 mode=layer"),
            ("layer, images", "mesh=2 split=N:0 partN=0,1,3 mode=layer all=1"),
            ("RMS", "mesh=3 split=H:0 partH=0,1,4,5 mode=rms biased=0"),
            ("adaptive", "mesh=2 split=N:0 partN=0,1,3 mode=ada"),
            ("instance", "mesh=3 split=H:0 partH=0,1,4,5 mode=instance"),
            ("batch", "mesh=3 split=H:0 partH=0,1,4,5 mode=batch"),
            ("batch, one row on each of 8 ranks but one", "mesh=8 split=H:0 "
             "partH=0,1,2,3,4,5,6,7,9 mode=batch level=50"),
            ("batch, images and rows", "mesh=2x2 split=N:0,H:1 partN=0,1,3 "
             "partH=0,2,5 mode=batch")):
        size = "9x4" if "8 ranks" in n else "5x4"
        for op in ("training", "backward"):
            running = " running=1" * (op == "training" and "batch" in words)
            cases.append((f"norm graph, {n}, {op}",
                          f"op=norm_graph_{op} n=3 c=8 size={size} order=NHWC "
                          f"{words}{running}"))
    return cases
