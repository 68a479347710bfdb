# SPDX-License-Identifier: Apache-2.0
"""Small networks: a row of convolutions, normalisations, activations, poolings
and transposed convolutions, with residual additions and two branches; first
forward, then every gradient.

The word `net` lists the layers with dashes between them. The numbers are
kernel, stride, padding, outputs:

    conv.3.1.1.4  up.2.2.0.3  pool.2.2.0.avgin  bn  act.tanh
    keep ... add              adds the kept tensor to the result of these layers
    keep ... swap ... add     adds the results of two branches
"""
import numpy as np

from families.family import Family, copy_of, dims_of
from families.layers import CONV, NORM, POOL, Builder, compute
from families.windows import out_sizes, rolled, taps, unrolled
from tensors import make

# If a value is nearer than this to a kink, rounding may decide the slope.
MARGIN = 1e-4
# reference() moves each result this often, by this part of its terms. Real
# roundings are not random and may add up to MORE times what it measures.
SAMPLES, LITTLE, MORE = 4, 1e-10, 8


class Network(Family):
    ops = ("network",)
    sharded = ops
    periodic = True
    ambiguous = staticmethod(any)

    def layers(self, rng, setting):
        """Returns the kinds of layers that the setting allows."""
        if setting.view == "whole" or not setting.split:
            return ["conv", "up", "pool", "bn", "act", "keep"]
        kinds = ["act", "keep"]
        for kind, family, ops in (
                ("conv", CONV, ("conv_forward", "conv_data", "conv_filter",
                                "conv_bias")),
                ("up", CONV, ("conv_data",)),
                ("pool", POOL, POOL.ops), ("bn", NORM, NORM.ops)):
            # If channels are cut, parameters of bn have the size of a piece.
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
            """Returns a convolution that does not change the extents."""
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
        return False  # such values do not survive several layers

    def legal(self, case):
        """Returns whether every extent is at least 1 and no value is near a
        kink."""
        try:
            net = Builder(case)
        except (ValueError, KeyError, IndexError, AttributeError):
            return False  # an extent is 0, or smaller() broke the word `net`
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
        """The bound of a tensor's error is relative to its largest element, or
        to the effect that roundings of earlier calls have on it. The second may
        be larger: a gradient may be a small difference of large values. To
        measure that effect, each call's result is moved at random by a small
        part of its terms, and the calls after it are computed from the moved
        values."""
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
    """Returns whether the largest value of every window exceeds the second by
    more than MARGIN."""
    case, x = unrolled(case), rolled(case, x)
    best = np.full([*x.shape[:2], *out_sizes(case)], -np.inf)
    second = best.copy()
    for _, out, inside in taps(case):
        found, top, next = (x[(..., *inside)], best[(..., *out)],
                            second[(..., *out)])
        np.maximum(next, np.minimum(top, found), out=next)
        np.maximum(top, found, out=top)
    return (best - second).min() > MARGIN
