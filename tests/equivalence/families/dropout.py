# SPDX-License-Identifier: Apache-2.0
"""Dropout, twice forward and once backward. Which elements are dropped is the
device's affair: several ranks have to drop those of one."""
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
        return case["type"] != "bfloat16"  # cuDNN has none

    def meets(self, case, tensors):
        # Two that are on every rank look like pieces of a larger one.
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
        """Each is zero or scaled: both are as far from half of it."""
        scale = 0 if case["drop"] == 1 else 1 / (1 - case["drop"])
        right = {}
        for to, of in ("y", "x"), ("dx", "dy"):
            half = t[of] * scale / 2
            right[to] = half, abs(half) * 1.01 / ONE_SLACK / math_eps(
                case["type"])
        return right
