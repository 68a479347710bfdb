# SPDX-License-Identifier: Apache-2.0
"""Pointwise calls: OpTensor and AddTensor with broadcasting, ScaleTensor,
SetTensor, TransformTensor, activations and their gradients."""
import numpy as np

from families.family import (Family, blend, call, common, dims_of, extent,
                             old, shape)
from tensors import Tensor, decode, encode, eps, math_eps

FUNCTIONS = {"add": np.add, "mul": np.multiply, "min": np.minimum,
             "max": np.maximum}
# The types that a result may have if it differs from the operands'.
OTHERS = {"float": ["half", "bfloat16"], "half": ["float"],
          "bfloat16": ["float"]}
MODES = ["sigmoid", "relu", "tanh", "clipped", "elu", "swish"]


class Pointwise(Family):
    ops = ("op", "add", "scale", "set", "transform", "act_forward",
           "act_backward")
    sharded = ops
    splits = "NCDHW"
    moves = ("a", "b", "c", "x", "y", "dx", "dy")
    anywhere = True
    simple = {"fn": "add", "mode": "relu", "at": 0, "alpha2": 1, "broad": "-",
              "result": "same"}

    def words(self, rng, setting, case):
        op, dims = case["op"], dims_of(case)
        case["at"] = int(rng.random() < 0.3)
        if case["at"] and op in ("op", "act_backward"):
            # Operands in the result's memory. op: 1 a, 2 b, 3 both;
            # act_backward: 1 dy, 2 x, 3 y.
            case["at"] = rng.choice([1, 2, 3])
        if op == "op":
            case["fn"] = rng.choice([*FUNCTIONS, "sqrt", "not"])
            case["alpha2"] = rng.choice([1, round(rng.uniform(-2, 2), 3)])
            if case["fn"] == "sqrt":
                case["alpha"] = abs(case["alpha"])
        if op in ("op", "add"):
            # Letters of the dimensions in which the second operand is 1.
            case["broad"] = rng.choice(
                ["-", "NHW" if len(dims) == 4 else "NDHW",
                 "".join(d for d in dims if rng.random() < 0.5) or "-"])
        if op in ("op", "transform") and case["type"] in OTHERS and \
                rng.random() < 0.3:
            case["result"] = rng.choice(OTHERS[case["type"]])
        if op == "transform":
            case["into"] = "".join(rng.sample(dims, len(dims)))
        if op[:3] == "act":
            case["mode"] = rng.choice(MODES)
            case["coef"] = round(rng.uniform(0.25, 2), 3)

    def legal(self, case):
        other = case.get("result", "same")
        if case["op"] == "op" and case["at"] > 1 and \
                any(extent(case, dim) > 1 for dim in case["broad"].strip("-")):
            return False  # a broadcast operand is not as large as the result
        if other != "same" and (case["at"] or
                                other not in OTHERS.get(case["type"], ())):
            return False
        return not (case["at"] and case["op"] in ("add", "transform"))

    def tensors(self, case):
        op, like, cut = case["op"], common(case), case["part"]
        size, at = shape(case), case["at"]
        result = dict(size=size, cut=cut, out=True, spread=2, **like)
        if case.get("result", "same") != "same":
            result["type"] = case["result"]
        if op == "scale":
            return [Tensor("y", **{**result, "spread": 1})]
        if op == "set":
            return [Tensor("y", **result, values="nothing")]
        if op == "transform":
            return [Tensor("x", size, cut=cut, spread=1, **like),
                    Tensor("y", **{**result, "order": case["into"]},
                           values=old(case))]
        if op in ("op", "add"):
            broad = [1 if dim in case["broad"] else n
                     for dim, n in zip(like["dims"], size)]
            bcut = {dim: first for dim, first in cut.items()
                    if dim not in case["broad"]}
            b = dict(size=broad, cut=bcut, spread=2, **like)
            if op == "add":
                return [Tensor("a", **b),
                        Tensor("c", **result,
                               values="uniform" if case["beta"] else "nothing")]
            positive = "positive" if case["fn"] == "sqrt" else "uniform"
            if at:
                made = [Tensor("c", **{**result, "spread": 1},
                               values=positive)]
                for bit, name in (1, "a"), (2, "b"):
                    made.append(Tensor(name, size, cut=cut, at="c", **like)
                                if at & bit else Tensor(
                                    name, **(b if name == "b" else
                                             {**b, "size": size, "cut": cut}),
                                    values="uniform" if name == "b" else
                                    positive))
                return made
            return [Tensor("a", size, cut=cut, values=positive, spread=1,
                           **like), Tensor("b", **b),
                    Tensor("c", **result, values=old(case))]
        if op == "act_forward":
            if at:
                return [Tensor("y", **{**result, "spread": 1}),
                        Tensor("x", size, cut=cut, at="y", **like)]
            return [Tensor("x", size, cut=cut, spread=1, **like),
                    Tensor("y", **result, values=old(case))]
        if at:
            shared = (None, "dy", "x", "y")[at]
            return [Tensor("dx", **{**result, "spread": 1})] + [
                Tensor(name, size, cut=cut, at="dx", **like)
                if name == shared else
                Tensor(name, size, cut=cut, spread=1, **like)
                for name in ("x", "y", "dy")]
        return [Tensor(name, size, cut=cut, spread=1, **like)
                for name in ("x", "y", "dy")] + [
                    Tensor("dx", **result, values=old(case))]

    def derive(self, case, t):
        if case["op"] == "act_backward":
            t["y"] = activation(case, t["x"])
            if case["at"] == 3:
                t["dx"] = t["y"]

    def calls(self, case, local):
        words = {"op": ("fn", "alpha", "alpha2", "beta"),
                 "add": ("alpha", "beta"), "scale": ("alpha",), "set": (),
                 "transform": ("alpha", "beta")}.get(
                     case["op"], ("mode", "coef", "alpha", "beta"))
        more = {"value": case["alpha"]} if case["op"] == "set" else {}
        return [call(case["op"], case, local, *words, **more)]

    def reference(self, case, t):
        op = case["op"]
        if op == "scale":
            return {"y": blend({**case, "beta": 0}, t["y"], abs(t["y"]), None)}
        if op == "set":
            value = decode(encode(np.full(shape(case), case["alpha"]),
                                  case["type"]), case["type"])
            return {"y": (value, abs(value))}
        if op == "transform":
            return {"y": blend(case, t["x"], abs(t["x"]), t["y"])}
        if op == "add":
            wide = np.broadcast_to(t["a"], t["c"].shape)
            return {"c": blend(case, wide, abs(wide), t["c"])}
        if op == "op":
            return {"c": operate(case, t["a"], t["b"], t["c"])}
        if op == "act_forward":
            value = activation(case, t["x"])
            return {"y": blend(case, value, abs(value) + abs(t["x"]), t["y"])}
        value = t["dy"] * slope(case, t["x"])
        # The slope may be computed from y, which was rounded to its type.
        terms = abs(t["dy"]) * (2 + abs(t["x"])) * \
            max(1, eps(case["type"]) / math_eps(case["type"]))
        return {"dx": blend(case, value, terms, t["dx"])}


def operate(case, a, b, c):
    a, b = case["alpha"] * a, case["alpha2"] * b
    fn = case["fn"]
    if fn == "sqrt":
        value = np.sqrt(a)
        terms = value
    elif fn == "not":
        value = 1 - a
        terms = 1 + abs(a)
    else:
        value = FUNCTIONS[fn](a, b)
        terms = abs(a * b) if fn == "mul" else abs(a) + abs(b)
    return blend({**case, "alpha": 1}, value, terms, c)


def activation(case, x):
    mode, coef = case["mode"], case["coef"]
    sigmoid = 1 / (1 + np.exp(-x))
    return {"sigmoid": lambda: sigmoid, "relu": lambda: np.maximum(x, 0),
            "tanh": lambda: np.tanh(x),
            "clipped": lambda: np.clip(x, 0, coef),
            "elu": lambda: np.where(x > 0, x, coef * np.expm1(x)),
            "swish": lambda: x / (1 + np.exp(-coef * x))}[mode]()


def slope(case, x):
    mode, coef = case["mode"], case["coef"]
    if mode == "sigmoid":
        y = 1 / (1 + np.exp(-x))
        return y * (1 - y)
    if mode == "tanh":
        return 1 - np.tanh(x) ** 2
    if mode == "relu":
        return (x > 0) * 1.0
    if mode == "clipped":
        return ((x > 0) & (x < coef)) * 1.0
    if mode == "elu":
        return np.where(x > 0, 1, coef * np.exp(x))
    sigmoid = 1 / (1 + np.exp(-coef * x))
    return sigmoid * (1 + coef * x * (1 - sigmoid))
