# SPDX-License-Identifier: Apache-2.0
"""Dropout, twice forward and once backward. The device chooses which elements
are dropped; several ranks must drop the same elements as one rank."""
from families.family import Family, call, common, shape
from tensors import Tensor, math_eps

ONE_SLACK = 64


class Dropout(Family):
    ops = ("dropout",)
    combines = True
    sharded = ops
    moves = ("x", "y", "dx", "dy")
    splits = "NCDHW"
    simple = {"drop": 0.5}

    def words(self, rng, setting, case):
        case["drop"] = rng.choice([0, 0.1, 0.5, 0.5, 0.75, 1])

    def legal(self, case):
        return case["type"] != "bfloat16"  # cuDNN does not support it

    def meets(self, case, tensors):
        # If both are whole on every rank, they look like pieces of a larger
        # tensor.
        of = {t.name: t for t in tensors}
        return all(of[a].cut or of[b].cut for a, b in (("x", "y"),
                                                       ("dy", "dx")))

    def tensors(self, case):
        like = dict(size=shape(case), cut=case["part"], **common(case))
        return [Tensor(name, **like, spread=1) for name in ("x", "dy")] + [
            Tensor(name, **like, values="nothing", out=True, spread=2)
            for name in ("y", "dx")]

    def calls(self, case, local):
        return [call("dropout", case, local, "drop", "seed")]

    def reference(self, case, t):
        """An element is 0 or scaled. The reference is half of the scaled value,
        which is equally far from both."""
        scale = 0 if case["drop"] == 1 else 1 / (1 - case["drop"])
        right = {}
        for to, of in ("y", "x"), ("dx", "dy"):
            half = t[of] * scale / 2
            right[to] = half, abs(half) * 1.01 / ONE_SLACK / math_eps(
                case["type"])
        return right
