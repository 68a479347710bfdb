# SPDX-License-Identifier: Apache-2.0
"""Turns the word that names a network's layers into tensors and calls."""
import numpy as np

from families.conv import Convolution
from families.family import common, shape
from families.norm import BatchNorm
from families.pointwise import Pointwise
from families.pool import Pooling
from tensors import Tensor

CONV, POOL, POINT, NORM = Convolution(), Pooling(), Pointwise(), BatchNorm()


class Node:
    """One call: its family, its words and its tensors. names: for each operand
    of the family, the name of the network's tensor."""

    def __init__(self, family, case, names):
        self.family, self.case, self.names = family, case, names

    def line(self, local):
        """Returns the call's lines for op_case."""
        sizes = {mine: local[name] for mine, name in self.names.items()}
        (line,) = self.family.calls(self.case, sizes)
        words = line.split(" ")
        return " ".join(words[:1] + [
            f"{key}={self.names.get(key, value)}" for key, value in
            (word.split("=", 1) for word in words[1:])])


class Builder:
    """Turns the word `net` into tensors and calls."""

    def __init__(self, case):
        self.case, self.like = case, common(case)
        self.tensors, self.nodes, self.tape = {}, [], []
        self.touched = set()  # gradients that a call has written
        self.add("x", shape(case), case["part"], values="uniform", spread=1,
                 out=False)
        current, kept = "x", []
        for number, layer in enumerate(case["net"].split("-")):
            kind, *numbers = layer.split(".")
            if kind == "keep":
                kept.append(current)
            elif kind == "swap":
                kept[-1], current = current, kept[-1]
            else:
                second = kept.pop() if kind == "add" else None
                layer = getattr(self, "layer_" + kind)
                current = layer(str(number), current, second, *numbers)
        self.result = current
        last = self.tensors[current]
        self.add("d" + current, last.size, last.cut, values="uniform",
                 spread=1, out=False)
        self.touched.add("d" + current)
        for back in reversed(self.tape):
            back()

    def add(self, name, size, cut, **more):
        if name not in self.tensors:
            more = {"values": "nothing", "out": True, **self.like, **more}
            self.tensors[name] = Tensor(name, size, cut=cut, **more)
        return name

    def parameter(self, name, size, **more):
        plain = {"order": "", "gap": 0, **more}
        self.add("d" + name, size, {}, **{**plain, "values": "nothing",
                                          "summed": True})
        return self.add(name, size, {}, **{"values": "uniform", "out": False,
                                           **plain})

    def filter(self, number, like):
        """Adds a filter with values so small that activations do not grow."""
        most = (3 / np.prod(like.size[1:])) ** 0.5
        return self.parameter("w" + number, like.size, kind="filter",
                              order=like.order, values=(-most, most))

    def words(self, name, op, **more):
        """Returns the words of a call on this activation."""
        t = self.tensors[name]
        more.update({key: self.case[key] for key in ("wrap",)
                     if key in self.case})
        return {"op": op, "part": t.cut, "n": t.size[0], "c": t.size[1],
                "size": t.size[2:], "alpha": 1, "beta": 0, "at": 0,
                "type": self.case["type"], "order": self.case["order"],
                "gap": self.case["gap"], **more}

    def call(self, family, case, names):
        self.nodes.append(Node(family, case, names))

    def gradient(self, name):
        """Returns the name of the gradient, and the beta that adds to it if a
        call has written it already."""
        t = self.tensors[name]
        self.add("d" + name, t.size, t.cut)
        beta = int("d" + name in self.touched)
        self.touched.add("d" + name)
        return "d" + name, beta

    # ---- layers: each returns the name of its result ------------------------

    def window(self, x, k, s, p):
        dims = len(self.tensors[x].size) - 2
        thin = [n == 1 for n in self.tensors[x].size[2:]]
        pick = lambda value, plain: [plain if thin[i] else int(value)
                                     for i in range(dims)]
        return {"kernel": pick(k, 1), "stride": pick(s, 1), "pad": pick(p, 0),
                "dilation": [1] * dims}

    def layer_conv(self, number, x, _, k, s, p, outputs):
        words = self.words(x, "conv_forward", k=int(outputs), groups=1,
                           flipped=0, **self.window(x, k, s, p))
        parts = {t.name: t for t in CONV.tensors(words)}
        w = self.filter(number, parts["w"])
        y = self.add("a" + number, parts["y"].size, parts["y"].cut)
        self.call(CONV, words, {"x": x, "w": w, "y": y})
        ones = [1] * len(words["size"])
        b = self.parameter("b" + number, [1, words["k"]] + ones)
        self.call(POINT, self.words(y, "add", beta=1), {"a": b, "c": y})

        def back():
            dy = "d" + y
            # The filter's gradient comes first, so that the halo of dy can
            # travel during it.
            self.call(CONV, {**words, "op": "conv_filter"},
                      {"x": x, "dy": dy, "dw": "d" + w})
            self.call(CONV, {**words, "op": "conv_bias"},
                      {"dy": dy, "db": "d" + b})
            dx, beta = self.gradient(x)
            self.call(CONV, {**words, "op": "conv_data", "beta": beta},
                      {"dy": dy, "w": w, "dx": dx})
        self.tape.append(back)
        return y

    def layer_up(self, number, x, _, k, s, p, outputs):
        window, t = self.window(x, k, s, p), self.tensors[x]
        size = [(n - 1) * s - 2 * p + k for n, k, s, p in zip(
            t.size[2:], window["kernel"], window["stride"], window["pad"])]
        words = {**self.words(x, "conv_data"), "given": "dy", "size": size,
                 "c": int(outputs), "k": t.size[1], "groups": 1, "flipped": 0,
                 **window}
        parts = {t.name: t for t in CONV.tensors(words)}
        w = self.filter(number, parts["w"])
        y = self.add("a" + number, parts["dx"].size, parts["dx"].cut)
        self.call(CONV, words, {"dy": x, "w": w, "dx": y})

        def back():
            dy = "d" + y
            self.call(CONV, {**words, "op": "conv_filter"},
                      {"x": dy, "dy": x, "dw": "d" + w})
            dx, beta = self.gradient(x)
            self.call(CONV, {**words, "op": "conv_forward", "beta": beta},
                      {"x": dy, "w": w, "y": dx})
        self.tape.append(back)
        return y

    def layer_pool(self, number, x, _, k, s, p, mode):
        words = self.words(x, "pool_forward", mode=mode, ties=0, nan=0,
                           **self.window(x, k, s, p))
        del words["dilation"]
        parts = {t.name: t for t in POOL.tensors(words)}
        y = self.add("a" + number, parts["y"].size, parts["y"].cut)
        self.call(POOL, words, {"x": x, "y": y})

        def back():
            dx, beta = self.gradient(x)
            self.call(POOL, {**words, "op": "pool_backward", "beta": beta},
                      {"x": x, "y": y, "dy": "d" + y, "dx": dx})
        self.tape.append(back)
        return y

    def layer_bn(self, number, x, _):
        t = self.tensors[x]
        words = self.words(x, "bn_training", mode="spatial", epsilon=0.01,
                           saved=1, running=0, factor=1, level=0, drift=0,
                           alpha2=1, beta2=0, api="plain", fuse="none")
        size = [1, t.size[1]] + [1] * len(t.size[2:])
        y = self.add("a" + number, t.size, t.cut)
        scale = self.parameter("s" + number, size)
        bias = self.parameter("b" + number, size)
        saved = {name: self.add(name[6] + number, size, {}, order="", gap=0)
                 for name in ("saved_mean", "saved_inv")}
        self.call(NORM, words, {"x": x, "y": y, "scale": scale, "bias": bias,
                                **saved})

        def back():
            dx, beta = self.gradient(x)
            self.call(NORM, {**words, "op": "bn_backward", "beta": beta},
                      {"x": x, "dy": "d" + y, "dx": dx, "scale": scale,
                       "dscale": "d" + scale, "dbias": "d" + bias, **saved})
        self.tape.append(back)
        return y

    def layer_act(self, number, x, _, mode):
        t = self.tensors[x]
        words = self.words(x, "act_forward", mode=mode, coef=1.0)
        y = self.add("a" + number, t.size, t.cut)
        self.call(POINT, words, {"x": x, "y": y})

        def back():
            dx, beta = self.gradient(x)
            self.call(POINT, {**words, "op": "act_backward", "beta": beta},
                      {"x": x, "y": y, "dy": "d" + y, "dx": dx})
        self.tape.append(back)
        return y

    def layer_add(self, number, a, b):
        t = self.tensors[a]
        if t.size != self.tensors[b].size:
            raise ValueError("a sum of different extents")
        words = self.words(a, "op", fn="add", alpha2=1, broad="-")
        y = self.add("a" + number, t.size, t.cut)
        self.call(POINT, words, {"a": a, "b": b, "c": y})

        def back():
            for name in (a, b):
                dx, beta = self.gradient(name)
                self.call(POINT, self.words(a, "add", beta=beta),
                          {"a": "d" + y, "c": dx})
        self.tape.append(back)
        return y


def compute(node, values, part=0, rng=None):
    """Computes a call in float64 and returns the largest terms of its results.
    part: each result is moved by plus or minus this part of its terms, at
    random."""
    operands = {mine: values[name] for mine, name in node.names.items()}
    largest = {}
    for mine, (value, terms) in node.family.reference(node.case,
                                                      operands).items():
        if mine in node.names:
            if part:
                value = value + part * terms * rng.choice([-1, 1], value.shape)
            values[node.names[mine]] = value
            largest[node.names[mine]] = np.max(terms)
    return largest
