# SPDX-License-Identifier: Apache-2.0
"""The spatial-transformer sampler, forward and backward: x of the case's size
is sampled at a grid of coordinates, which has the extents `to` of y. And the
generator of such grids."""
import numpy as np

from families.family import (Family, blend, call, common, dims_of, old,
                             shape, words_of)
from tensors import Tensor


class Sampler(Family):
    ops = ("sampler_forward", "sampler_backward")
    sharded = ops
    splits = "NCHW"
    moves = ("x", "y", "dx", "dy")
    anywhere = True
    sizes_tell = False
    lists = {"to": 1}
    simple = {"alpha2": 1, "beta2": 0}

    def words(self, rng, setting, case):
        case["alpha2"] = rng.choice([1, round(rng.uniform(-2, 2), 3)])
        case["beta2"] = rng.choice([0, 0, round(rng.uniform(-2, 2), 3)])
        few = setting.view == "whole"
        case["to"] = [rng.randint(1 if few else setting.pieces(dim),
                                  12 + 3 * setting.pieces(dim))
                      for dim in dims_of(case)[2:]]

    def recut(self, rng, setting, case):
        case["ycut"] = {}
        for dim, total in zip(dims_of(case)[2:], case["to"]):
            pieces = setting.pieces(dim)
            if dim in case["part"] and setting.view == "shard":
                case["ycut"][dim] = [0] + sorted(rng.sample(
                    range(1, total), pieces - 1)) + [total]
        if not case["ycut"]:
            del case["ycut"]

    def legal(self, case):
        return len(case["size"]) == 2 and case["type"] in (
            "float", "double", "half") and all(
                first[-1] == to for to, first in
                zip(case["to"], map(self.cut(case).get, "HW")) if first)

    def cut(self, case):
        """How y is cut."""
        cut = dict(case["part"])
        for dim, to in zip(dims_of(case)[2:], case["to"]):
            if dim in cut:
                pieces = len(cut[dim]) - 1
                cut[dim] = case.get("ycut", {}).get(
                    dim, [i * to // pieces for i in range(pieces + 1)])
        return cut

    def tensors(self, case):
        like, cut = common(case), self.cut(case)
        result = [case["n"], case["c"]] + case["to"]
        points = {"type": case["type"], "dims": dims_of(case), "order": "NHWC",
                  "cut": {d: first for d, first in cut.items() if d != "C"}}
        size = [case["n"], 2] + case["to"]
        x = Tensor("x", shape(case), cut=case["part"], spread=1, **like)
        grid = Tensor("grid", size, spread=1, **points)
        if case["op"] == "sampler_forward":
            return [x, Tensor("y", result, cut=cut, values=old(case), out=True,
                              spread=2, **like), grid]
        return [x, Tensor("dx", shape(case), cut=case["part"],
                          values=old(case), out=True, spread=2,
                          **like),
                Tensor("dy", result, cut=cut, spread=1, **like), grid,
                Tensor("dgrid", size, out=True, spread=2,
                       values="uniform" if case["beta2"] else "nothing",
                       **points)]

    def placed(self, case):
        """The grid is where y is."""
        tensors = {t.name: t for t in super().placed(case)}
        y = tensors.get("y") or tensors["dy"]
        for name in {"grid", "dgrid"} & set(tensors):
            t = tensors[name]
            t.cut = {d: first for d, first in y.cut.items() if d != "C"}
            t.axes = y.axes
        return list(tensors.values())

    def elsewhere(self, rng, setting, case, t):
        """Sizes do not tell of a tensor that all of it is on every rank."""
        word = super().elsewhere(rng, setting, case, t)
        return "local" if word == "-" else word

    def scatter(self, rng, setting, case):
        """Where one tensor is tagged, sizes do not tell how the others are
        split (SDG-625): these are tagged, too."""
        super().scatter(rng, setting, case)
        placed = self.placed(case)
        if any(t.tag for t in placed):
            for t in placed:
                if t.name in self.moves and t.cut and not t.tag:
                    case["on." + t.name] = words_of(t.cut, setting.split)

    def free(self, name):
        return name not in ("grid", "dgrid")

    def derive(self, case, t):
        """Coordinates in pixels, and now and then outside; not close to where
        the gradient jumps from one pixel to the next."""
        rng = np.random.default_rng(case["seed"])
        for i, extent in enumerate(reversed(case["size"])):
            size = t["grid"][:, i].shape
            at = rng.integers(-2, extent + 1, size) + rng.uniform(0.2, 0.8,
                                                                  size)
            t["grid"][:, i] = 2 * at / max(extent - 1, 1) - 1

    def calls(self, case, local):
        wrong = ["told"] if case.get("told") else []  # refused.py
        return [call(case["op"], case, local, "alpha", "beta", "alpha2",
                     "beta2", *wrong)]

    def one_each(self, case):
        return False  # these are pieces

    def exact(self, case):
        return case["op"] == "sampler_forward"

    def pads(self, case):
        """A device may multiply each addend by an infinite factor, instead of
        their sum."""
        return bool(np.isinf([case["alpha"], case["alpha2"]]).any())

    def reference(self, case, t):
        corners = list(points(case, t["grid"]))
        pick = lambda tensor, at: tensor[
            np.arange(case["n"])[:, None, None, None],
            np.arange(case["c"])[None, :, None, None],
            at[0][:, None], at[1][:, None]]
        x = t["x"]
        if case["op"] == "sampler_forward":
            value, terms = np.zeros(t["y"].shape), np.zeros(t["y"].shape)
            for at, weight, _ in corners:
                value += weight[:, None] * pick(x, at)
                terms += abs(weight[:, None] * pick(x, at))
            return {"y": blend(case, value, terms, t["y"])}
        dy = t["dy"]
        dx, dx_terms = np.zeros(x.shape), np.zeros(x.shape)
        dgrid, size = np.zeros(t["dgrid"].shape), np.zeros(t["dgrid"].shape)
        for at, weight, slopes in corners:
            index = np.broadcast_arrays(
                np.arange(case["n"])[:, None, None, None],
                np.arange(case["c"])[None, :, None, None],
                at[0][:, None], at[1][:, None])
            np.add.at(dx, tuple(index), weight[:, None] * dy)
            np.add.at(dx_terms, tuple(index), abs(weight[:, None] * dy))
            for i, slope in enumerate(slopes):
                term = dy * pick(x, at) * slope[:, None]
                dgrid[:, i] += term.sum(1)
                size[:, i] += abs(term).sum(1)
        words = {"alpha": case["alpha2"], "beta": case["beta2"]}
        return {"dx": blend(case, dx, dx_terms, t["dx"]),
                "dgrid": blend(words, dgrid, size, t["dgrid"])}


def points(case, grid):
    """The four pixels around each point: their indices, cut at the edges; their
    weights, 0 outside; and how these grow with the point's two coordinates."""
    height, width = case["size"]
    h = np.clip((grid[:, 1] + 1) * (height - 1) / 2, -2, height + 1)
    w = np.clip((grid[:, 0] + 1) * (width - 1) / 2, -2, width + 1)
    top, left = np.floor(h), np.floor(w)
    for below in 0, 1:
        for beside in 0, 1:
            i, j = (top + below).astype(int), (left + beside).astype(int)
            inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
            along_h = h - top if below else 1 - (h - top)
            along_w = w - left if beside else 1 - (w - left)
            yield ((np.clip(i, 0, height - 1), np.clip(j, 0, width - 1)),
                   along_h * along_w * inside,
                   (along_h * (2 * beside - 1) * (width - 1) / 2 * inside,
                    along_w * (2 * below - 1) * (height - 1) / 2 * inside))


class Generator(Family):
    """Grids of the case's size by affine maps, and the gradients of these."""
    ops = ("grid_forward", "grid_backward")

    def legal(self, case):
        return len(case["size"]) == 2 and case["type"] in ("float", "double",
                                                           "half")

    def tensors(self, case):
        like = {"type": case["type"], "dims": dims_of(case)}
        forward = case["op"] == "grid_forward"
        values = ["uniform", "nothing"]
        return [Tensor("theta", [case["n"], 6] + [1] * len(case["size"]),
                       cut={d: first for d, first in case["part"].items()
                            if d == "N"},
                       values=values[not forward], out=not forward, **like),
                Tensor("grid", [case["n"], 2] + case["size"], order="NHWC",
                       cut=case["part"], values=values[forward], out=forward,
                       spread=1, **like)]

    def free(self, name):
        return False

    def calls(self, case, local):
        return [call(case["op"], case, local)]

    def reference(self, case, t):
        h, w = case["size"]
        line = lambda n: np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
        at = np.stack([np.broadcast_to(line(w), (h, w)),
                       np.broadcast_to(line(h)[:, None], (h, w)),
                       np.ones((h, w))])
        if case["op"] == "grid_forward":
            theta = t["theta"].reshape(case["n"], 2, 3)
            return {"grid": (np.einsum("nij,jhw->nihw", theta, at),
                             np.einsum("nij,jhw->nihw", abs(theta), abs(at)))}
        flat = lambda theta: theta.reshape(t["theta"].shape)
        return {"theta": (flat(np.einsum("nihw,jhw->nij", t["grid"], at)),
                          flat(np.einsum("nihw,jhw->nij", abs(t["grid"]),
                                         abs(at))))}
