# SPDX-License-Identifier: Apache-2.0
"""sundog_redistribute: moves a tensor from any placement to any other. Pieces
may have any size; several ranks may hold the same values, or terms of a sum or
a maximum."""
import numpy as np

from cases import AXES
from families.family import Family, call, common, dims_of, shape
from tensors import Tensor, eps, math_eps


class Redistribution(Family):
    """Words of a case: `from` and `to` are placements, lists of items with
    semicolons between them: H:0+1 (H is split over axes 0 and 1), sum:2 or
    max:2 (the ranks along axis 2 hold terms). `cutfrom` and `cutto` say where
    they are cut: H:0,3,7;W:0,2,5."""
    ops = ("redistribute",)
    sharded = ops
    views = ("shard",)
    splits = "NCDHW"
    preload = True
    simple = {"from": "-", "to": "-", "cutfrom": "-", "cutto": "-"}

    def draw(self, rng, setting, op):
        axes = sorted({a for axes in setting.split.values() for a in axes})
        case = {"op": op, "mesh": setting.mesh, "split": setting.split,
                "part": {}, "strategy": setting.strategy,
                "type": rng.choice(["float", "float", "double", "half",
                                    "bfloat16"]),
                "n": rng.randint(1, 4), "c": rng.randint(1, 6),
                "size": [rng.randint(1, 12) for _ in range(rng.choice([2, 3]))],
                "gap": rng.choice([0, 0, 1, 3]), "alpha": 1, "beta": 0,
                "repeat": rng.choice([1, 2]), "seed": rng.randrange(1 << 30)}
        dims = dims_of(case)
        case["order"], case["into"] = (
            rng.choice([dims, dims[0] + dims[2:] + "C",
                        "".join(rng.sample(dims, len(dims)))])
            for _ in range(2))
        for side, pending in (("from", ["sum", "max"]), ("to", ["sum"])):
            items, pending = {}, rng.choice(pending)
            for axis in axes:  # a placement lists axes in the mesh's order
                kind = rng.choice([*rng.sample(dims, 3), "-", pending])
                items.setdefault(kind, []).append(axis)
            items.pop("-", None)
            case[side] = ";".join(
                f"{kind}:" + "+".join(map(str, items[kind]))
                for kind in items) or "-"
            parts = {}
            for dim in items:
                if dim in dims:
                    n = dict(zip(dims, shape(case)))[dim]
                    pieces = int(np.prod([setting.mesh[a]
                                          for a in items[dim]]))
                    parts[dim] = [0] + sorted(
                        rng.randint(0, n) for _ in range(pieces - 1)) + [n]
            case["cut" + side] = ";".join(
                f"{dim}:" + ",".join(map(str, first))
                for dim, first in parts.items()) or "-"
        return case if self.valid(case, setting) else None

    def valid(self, case, setting):
        if setting.view != "shard" or "wrap" in case:
            return False
        known = {a for axes in setting.split.values() for a in axes}
        for side in ("from", "to"):
            items, cut = placed(case, side), cuts(case, side)
            if not {a for axes in items.values() for a in axes} <= known:
                return False
            split = {dim for dim in items if dim in dims_of(case)}
            if split != set(cut) or side == "to" and "max" in items or \
                    split | {"sum", "max"} < set(items):
                return False
            for dim, first in cut.items():
                pieces = np.prod([setting.mesh[a] for a in items[dim]])
                if first != sorted(first) or len(first) != pieces + 1 or \
                        first[-1] != dict(zip(dims_of(case),
                                              shape(case)))[dim]:
                    return False
        return True

    def tensors(self, case):
        def side(name, where, **more):
            items = placed(case, where)
            combine = "max" if "max" in items else "sum"
            axes = items.get("sum", []) + items.get("max", [])
            return Tensor(name, shape(case), cut=cuts(case, where),
                          axes={dim: items[dim] for dim in items
                                if dim in dims_of(case)},
                          terms=[(a, case["mesh"][a]) for a in axes],
                          combine=combine, **{**common(case), **more})
        return [side("x", "from"),
                side("y", "to", order=case["into"], out=True,
                     values="nothing")]

    def calls(self, case, local):
        words = {side: ",".join(
            f"{kind}:" + "+".join(AXES[a] for a in axes)
            for kind, axes in placed(case, side).items()) or "replicated"
            for side in ("from", "to")}
        return [call("redistribute", case, local, **words)]

    def reference(self, case, t):
        items = placed(case, "from")
        if not {"sum", "max"} & set(items):
            return {"y": (t["x"], abs(t["x"]))}
        over = tuple(range(t["x"].ndim - len(shape(case))))
        if "max" in items:
            return {"y": (t["x"].max(axis=over), 0)}
        # Partial sums are rounded to the tensor's type before they are sent.
        return {"y": (t["x"].sum(axis=over), abs(t["x"]).sum(axis=over) *
                      eps(case["type"]) / math_eps(case["type"]))}

    def exact(self, case):
        return "sum" not in placed(case, "from")

    def smaller(self, case):
        for side in ("from", "to"):
            if case[side] != "-":
                items, cut = placed(case, side), cuts(case, side)
                for kind in items:
                    yield {**case, side: word({k: v for k, v in items.items()
                                               if k != kind}, "+"),
                           "cut" + side: word({k: v for k, v in cut.items()
                                               if k != kind}, ",")}
        yield from super().smaller(case)


def word(items, between):
    return ";".join(f"{kind}:" + between.join(map(str, numbers))
                    for kind, numbers in items.items()) or "-"


def numbers(text, between):
    items = [item.split(":") for item in text.split(";")] if text != "-" else []
    return {kind: [int(n) for n in of.split(between)] for kind, of in items}


def placed(case, side):
    return numbers(case[side], "+")


def cuts(case, side):
    return numbers(case["cut" + side], ",")
