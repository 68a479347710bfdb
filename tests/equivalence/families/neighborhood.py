# SPDX-License-Identifier: Apache-2.0
"""Neighbourhood attention and its gradients by the functions of sundog.h. A
case has n images with c heads over a grid; a head has hq channels in q and k,
and hv in v."""
import numpy as np

from families.family import Family, call, common, dims_of
from tensors import Tensor


class Neighborhood(Family):
    ops = ("neighborhood_forward", "neighborhood_backward")
    sharded = ops
    splits = "NCDHW"
    preload = True
    moves = ("k", "v", "o", "do", "dq", "dk", "dv")
    lists = {"kernel": 1, "dilation": 1, "causal": 0}
    # kv: "cut": k and v are cut like q, or where ycut says; "whole": they are
    # whole on every rank. together: q, k and v are one tensor.
    simple = {"cut": 0, "scale": 0, "hq": 2, "hv": 2, "kv": "cut"}

    def meets(self, case, tensors):
        """If heads are cut, sundog must be told which tensors are whole on
        every rank. It refuses such a gradient `do` (SDG-603), and takes such v
        and o for pieces of heads with more channels."""
        if not any("C" in t.cut for t in tensors):
            return True
        unsaid = [t for t in tensors if case.get("on." + t.name) == "-" and
                  t.size != case.get("named")]
        return case.get("on.do") != "-" and \
            not {"v", "o"} <= {t.name for t in unsaid}

    def words(self, rng, setting, case):
        spatial = len(case["size"])
        grid = case["dims"] = self.grid(rng, setting, spatial)
        most = {1: 9, 2: 5, 3: 3}[grid]
        if rng.random() < 0.2:
            most += 2
        case["cut"] = int(rng.random() < 0.3)
        case["hq"], case["hv"] = rng.randint(1, 5), rng.randint(1, 5)
        case["scale"] = rng.choice([0, 0, round(rng.uniform(-2, 2), 3)])
        case["kv"] = rng.choice(["cut"] * 5 + ["whole"])
        one = [1] * (spatial - grid)
        case["kernel"] = [rng.randint(1, most) for _ in range(grid)] + one
        case["dilation"] = [rng.choice([1, 1, 1, 2, 3])
                            for _ in range(grid)] + one
        case["causal"] = [int(rng.random() < 0.3)
                          for _ in range(grid)] + [0] * len(one)

    def grid(self, rng, setting, spatial):
        if spatial == 2 and "W" not in setting.split:
            return rng.choice([1, 2])
        return spatial

    def least_size(self, case, i):
        if case["cut"] or i >= case["dims"]:
            return 1
        return case["kernel"][i] * case["dilation"][i]

    def recut(self, rng, setting, case):
        for i in range(case["dims"], len(case["size"])):
            case["size"][i] = 1
        if case["kv"] == "cut" and rng.random() < 0.3:
            case["ycut"] = {}
            for dim in case["part"]:
                total = case["part"][dim][-1]
                if dim in "DHW" and total >= setting.pieces(dim):
                    case["ycut"][dim] = [0] + sorted(rng.sample(
                        range(1, total), setting.pieces(dim) - 1)) + [total]
            if not case["ycut"]:
                del case["ycut"]

    def legal(self, case):
        grid = case["dims"]
        return all(size >= self.least_size(case, i)
                   for i, size in enumerate(case["size"])) and \
            all(size == 1 for size in case["size"][grid:]) and \
            all(k == 1 and d == 1 and not c for k, d, c in
                zip(case["kernel"][grid:], case["dilation"][grid:],
                    case["causal"][grid:]))

    def smaller(self, case):
        yield from super().smaller(case)
        for key in ("hq", "hv"):
            if case[key] > 1:
                yield {**case, key: 1}

    def tensors(self, case):
        def tensor(name, channels, cut, **words):
            size = [case["n"], case["c"] * channels] + case["size"]
            cut = {dim: [b * channels for b in first] if dim == "C" else first
                   for dim, first in cut.items()}
            return Tensor(name, size, cut=cut, **words, **common(case))

        part, result = case["part"], {"values": "nothing", "out": True}
        keys = {} if case["kv"] == "whole" else {**part, **case.get("ycut", {})}
        hq, hv = case["hq"], case["hv"]
        inputs = [tensor("q", hq, part), tensor("k", hq, keys),
                  tensor("v", hv, keys)]
        if case["op"] == "neighborhood_forward":
            return inputs + [tensor("o", hv, part, **result)]
        return inputs + [tensor("do", hv, part), tensor("dq", hq, part, **result),
                         tensor("dk", hq, keys, **result),
                         tensor("dv", hv, keys, **result)]

    def calls(self, case, local):
        return [call(case["op"], case, local, "dims", "kernel", "dilation",
                     "causal", "cut", "c", "scale")]

    def one_each(self, case):
        return False  # extents of 1 count as pieces here

    def exact(self, case):
        return case["op"] == "neighborhood_forward"

    def reference(self, case, t):
        seen = windows(case)
        q, k, v = (heads(case, t[name]) for name in "qkv")
        scale = case["scale"] or q.shape[-1] ** -0.5
        score = np.where(seen, scale * q @ turned(k), -np.inf)
        p = np.exp(score - score.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        # A rounding of a score changes the weights.
        size = np.where(seen, abs(scale) * abs(q) @ turned(abs(k)), 0)
        slack = 1 + 2 * size.max(-1, keepdims=True)
        if case["op"] == "neighborhood_forward":
            return {"o": images(case, p @ v, (p * slack) @ abs(v))}
        g = heads(case, t["do"])
        dp, dp_size = g @ turned(v), abs(g) @ turned(abs(v))
        ds = p * (dp - (p * dp).sum(-1, keepdims=True))
        ds_size = slack * p * (dp_size +
                               (p * dp_size).sum(-1, keepdims=True))
        return {"dq": images(case, scale * ds @ k,
                             abs(scale) * ds_size @ abs(k)),
                "dk": images(case, scale * turned(ds) @ q,
                             abs(scale) * turned(ds_size) @ abs(q)),
                "dv": images(case, turned(p) @ g,
                             turned(p * slack) @ abs(g))}


def turned(matrix):
    return np.swapaxes(matrix, -1, -2)


def heads(case, tensor):
    """Returns the tensor as [n, c, sequence, channels]."""
    n, c = case["n"], case["c"]
    return turned(tensor.reshape(n, c, tensor.shape[1] // c, -1))


def images(case, *tensors):
    return tuple(turned(t).reshape([case["n"], -1] + case["size"])
                 for t in tensors)


def window(case, i, extent, at):
    """Returns the keys of the query at `at` in dimension i of the grid. They
    have distances from it that are multiples of the dilation, and the kernel
    says how many they are."""
    kernel, dilation = case["kernel"][i], case["dilation"][i]
    members = list(range(at % dilation, extent, dilation))
    place = members.index(at)
    first = place - (kernel - 1 if case["causal"][i] else kernel // 2)
    if not case["causal"][i] and not case["cut"]:
        first = max(0, min(first, len(members) - kernel))
    return [members[j] for j in range(first, first + kernel)
            if 0 <= j < len(members)]


def windows(case):
    """Returns [query, key]: whether the query sees the key."""
    seen = np.ones((1, 1), bool)
    for i, extent in enumerate(case["size"]):
        here = np.zeros((extent, extent), bool)
        for at in range(extent):
            here[at, window(case, i, extent, at)] = True
        seen = np.kron(seen, here).astype(bool)
    return seen
