# SPDX-License-Identifier: Apache-2.0
"""Small networks: convolutions, normalisation, activations, pooling and
transposed convolutions in a row, residual additions and two branches; forward,
then every gradient.

The layers are one word, `net`, of words with dashes between them; numbers are
kernel, stride, padding, outputs:

    conv.3.1.1.4  up.2.2.0.3  pool.2.2.0.avgin  bn  act.tanh
    keep ... add              what comes between, added to what was kept
    keep ... swap ... add     two branches, added
"""
import numpy as np

from families.family import Family, copy_of, dims_of
from families.layers import CONV, NORM, POOL, Builder, compute
from families.windows import out_sizes, rolled, taps, unrolled
from tensors import make

# Nearer than that to a kink, rounding may decide.
MARGIN = 1e-4
# How often, and by which part of its terms, each result is moved; and how much
# more than that roundings may come to, which are not drawn at random.
SAMPLES, LITTLE, MORE = 4, 1e-10, 8


class Network(Family):
    ops = ("network",)
    sharded = ops
    periodic = True
    ambiguous = staticmethod(any)

    def layers(self, rng, setting):
        """Kinds of layers that can be in a network of this setting."""
        if setting.view == "whole" or not setting.split:
            return ["conv", "up", "pool", "bn", "act", "keep"]
        kinds = ["act", "keep"]
        for kind, family, ops in (
                ("conv", CONV, ("conv_forward", "conv_data", "conv_filter",
                                "conv_bias")),
                ("up", CONV, ("conv_data",)),
                ("pool", POOL, POOL.ops), ("bn", NORM, NORM.ops)):
            # Parameters of pieces of channels are as large as these.
            if set(ops) <= set(family.sharded) and \
                    (kind != "bn" or "C" not in setting.split):
                kinds.append(kind)
        return kinds

    def words(self, rng, setting, case):
        case["type"] = rng.choice(["float"] * 3 + ["double"])
        last = "N" + dims_of(case)[2:] + "C"
        case["order"] = rng.choice([dims_of(case), dims_of(case), last])
        case["alpha"], case["beta"] = 1, 0
        kinds = self.layers(rng, setting)
        layers, channels = [], case["c"]

        def same(outputs):
            """A convolution that keeps the extents."""
            k = rng.choice([1, 3, 3, 5])
            return f"conv.{k}.1.{k // 2}.{outputs}"

        for _ in range(rng.randint(2, 7)):
            kind = rng.choice(kinds + ["conv"] * 2)
            outputs = rng.randint(1, 4)
            if kind not in kinds:
                continue
            if kind == "conv":
                layers.append(rng.choice([same(outputs)] * 3 + [
                    f"conv.{ksp}.{outputs}" for ksp in ("3.2.1", "2.2.0",
                                                        "4.3.1")]))
                channels = outputs
            elif kind == "up":
                layers.append("up." + rng.choice(
                    ["2.2.0", "3.2.1", "4.2.1", "3.1.1"]) + f".{outputs}")
                channels = outputs
            elif kind == "pool":
                mode = rng.choice(["avgin", "avgex", "max"])
                layers.append("pool." + rng.choice(
                    ["2.2.0", "2.2.0", "3.2.1", "3.1.1", "3.3.0"]) + "." + mode)
            elif kind == "bn":
                layers.append("bn")
            elif kind == "act":
                layers.append("act." + rng.choice(["tanh", "sigmoid", "relu",
                                                   "elu"]))
            elif "conv" in kinds:
                second = []
                if rng.random() < 0.4:
                    second, channels = ["swap", same(outputs)], outputs
                if rng.random() < 0.3 and "bn" in kinds:
                    second.append("bn")
                layers += ["keep", same(outputs), "act.tanh", same(channels),
                           *second, "add"]
        case["net"] = "-".join(layers or ["act.tanh"])

    def least_size(self, case, i):
        return 8 if len(case["size"]) == 2 else 6

    def hard(self, case, kinds):
        return False  # values of one layer are the next one's

    def legal(self, case):
        """Every extent is there; no value is near a kink."""
        try:
            net = Builder(case)
        except (ValueError, KeyError, IndexError, AttributeError):
            return False  # of no extent; or made smaller into nonsense
        if case["type"] not in ("float", "double"):
            return False
        if any(n < 1 for t in net.tensors.values() for n in t.size) or \
                not all(node.family.legal(node.case) for node in net.nodes):
            return False
        count = sum(np.prod(t.size) for t in net.tensors.values())
        return count < 200000 and self.smooth(case, net)

    def smooth(self, case, net):
        values = {name: make(t, case["seed"])
                  for name, t in net.tensors.items()}
        for node in net.nodes:
            kind, x = node.case.get("mode"), node.names.get("x")
            if node.case["op"] == "act_forward" and kind in ("relu", "elu"):
                if abs(values[x]).min() < MARGIN:
                    return False
            if node.case["op"] == "pool_forward" and kind == "max" and \
                    not apart(node.case, values[x]):
                return False
            compute(node, values)
        return True

    def tensors(self, case):
        return list(Builder(case).tensors.values())

    def calls(self, case, local):
        return [node.line(local) for node in Builder(case).nodes]

    def reference(self, case, t):
        """What matters is an error beside the largest of a tensor, or beside
        what the terms of all calls before it become in it: a gradient may be
        a difference of larger ones, and of that its own terms know nothing. So
        each call's result is moved by a little of its terms, at random, and
        the movements are followed through the network."""
        net, values, terms = Builder(case), dict(t), {}
        for node in net.nodes:
            terms.update(compute(node, values))
        for seed in range(SAMPLES):
            moved, rng = dict(t), np.random.default_rng(seed)
            for node in net.nodes:
                compute(node, moved, LITTLE, rng)
            for name in terms:
                by = abs(moved[name] - values[name]).max() / LITTLE
                terms[name] = max(terms[name], by)
        return {name: (values[name],
                       MORE * max(abs(values[name]).max(), terms[name]))
                for name, tensor in net.tensors.items() if tensor.out}

    def free(self, name):
        return name[0] in "ax" or name[:2] == "da"

    def exact(self, case):
        return False

    def strategies(self, case, setting):
        nodes = Builder(case).nodes
        return [s for s in ("auto", "repair", "extend", "adjoint")
                if all(s in node.family.strategies(node.case, setting)
                       for node in nodes)]

    def steady(self, case, setting):
        return all(node.family.steady(node.case, setting)
                   for node in Builder(case).nodes)

    def smaller(self, case):
        layers = case["net"].split("-")
        for i, layer in enumerate(layers):
            if len(layers) > 1 and layer not in ("keep", "swap", "add"):
                yield {**copy_of(case), "net": "-".join(layers[:i] +
                                                        layers[i + 1:])}
        yield from super().smaller(case)


def apart(case, x):
    """Whether in every window the largest is well above the second."""
    case, x = unrolled(case), rolled(case, x)
    best = np.full([*x.shape[:2], *out_sizes(case)], -np.inf)
    second = best.copy()
    for _, out, inside in taps(case):
        found, top, next = (x[(..., *inside)], best[(..., *out)],
                            second[(..., *out)])
        np.maximum(next, np.minimum(top, found), out=next)
        np.maximum(top, found, out=top)
    return (best - second).min() > MARGIN
