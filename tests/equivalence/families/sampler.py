# SPDX-License-Identifier: Apache-2.0
"""The spatial-transformer sampler, forward and backward, and the generator of
its grids. x has the case's `size`; the grid of coordinates and y have the
extents `to`."""
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
        """Returns how y is cut."""
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
        """Returns the operands; the grid is placed like y."""
        tensors = {t.name: t for t in super().placed(case)}
        y = tensors.get("y") or tensors["dy"]
        for name in {"grid", "dgrid"} & set(tensors):
            t = tensors[name]
            t.cut = {d: first for d, first in y.cut.items() if d != "C"}
            t.axes = y.axes
        return list(tensors.values())

    def elsewhere(self, rng, setting, case, t):
        """A tensor that is whole on every rank needs a tag: sizes do not show
        it."""
        word = super().elsewhere(rng, setting, case, t)
        return "local" if word == "-" else word

    def scatter(self, rng, setting, case):
        """If one tensor has a tag, the others need one, too: sizes do not show
        how they are split (SDG-625)."""
        super().scatter(rng, setting, case)
        placed = self.placed(case)
        if any(t.tag for t in placed):
            for t in placed:
                if t.name in self.moves and t.cut and not t.tag:
                    case["on." + t.name] = words_of(t.cut, setting.split)

    def free(self, name):
        return name not in ("grid", "dgrid")

    def derive(self, case, t):
        """Draws coordinates inside x and sometimes outside. They keep away from
        pixels' centres, where the gradient jumps."""
        rng = np.random.default_rng(case["seed"])
        for i, extent in enumerate(reversed(case["size"])):
            size = t["grid"][:, i].shape
            at = rng.integers(-2, extent + 1, size) + rng.uniform(0.2, 0.8,
                                                                  size)
            t["grid"][:, i] = 2 * at / max(extent - 1, 1) - 1

    def calls(self, case, local):
        wrong = ["told"] if case.get("told") else []  # see refused_cases()
        return [call(case["op"], case, local, "alpha", "beta", "alpha2",
                     "beta2", *wrong)]

    def one_each(self, case):
        return False  # extents of 1 count as pieces here

    def exact(self, case):
        return case["op"] == "sampler_forward"

    def pads(self, case):
        """A device may multiply each addend by an infinite factor instead of
        their sum, which may give NaN."""
        return bool(np.isinf([case["alpha"], case["alpha2"]]).any())

    def named(self):
        return named_cases()

    def refused(self, item):
        return refused_cases(item)

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
    """Yields for each of the four pixels around a point: its indices, limited
    to the image; its weight, 0 outside; and the derivatives of the weight with
    respect to the point's two coordinates."""
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


def channels(words):
    """Returns the number of channels that the words give all ranks."""
    return int((words + " partC=0,4 ").split("partC=")[1].split()[0]
               .split(",")[-1])


def named_cases():
    """Returns the named cases of the sampler: x has `size`, y has `to`."""
    cases = []
    for n, words in (
            ("rows", "mesh=3 split=H:0 partH=0,4,5,9 size=9x7 to=8x5"),
            ("one row on each of 8 ranks", "mesh=8 split=H:0 "
             "partH=0,1,2,3,4,5,6,7,8 size=8x5 to=8x3"),
            ("rows and columns", "mesh=2x2 split=H:0,W:1 partH=0,4,9 "
             "partW=0,3,8 size=9x8 to=5x12"),
            ("rows and columns over the other axes", "mesh=2x2 split=H:0,W:1 "
             "partH=0,4,9 partW=0,3,8 size=9x8 to=5x12 "
             "on.x=H:1@0,2,9/W:0@0,7,8"),
            ("channels", "mesh=3 split=C:0 partC=0,1,2,4 size=5x7 to=6x4"),
            ("images", "mesh=2 split=N:0 partN=0,1,3 size=5x7 to=6x4"),
            ("images and rows", "mesh=2x2 split=N:0,H:1 partN=0,2,3 "
             "partH=0,4,5 size=5x7 to=6x4"),
            ("x whole on every rank", "mesh=2 split=H:0 partH=0,4,9 size=9x8 "
             "to=5x12 on.x=local on.y=H:0@0,1,5 on.dy=H:0@0,1,5 on.dx=local"),
            ("fewer rows than ranks", "mesh=2x4 split=C:0,H:1 "
             "partC=0,1,3 partH=0,1,1,10,12 size=12x6 to=1x8 view=whole"),
            ("one pixel", "mesh=2 split=C:0 partC=0,1,2 size=1x1 to=4x4")):
        cases += [(f"sampler, {n}{more}", f"op=sampler_{op} "
                   f"n=3 c={channels(words)} {words} {rest}")
                  for op, more, rest in (("forward", "", ""),
                                         ("backward", ", backward", "beta=0.5 "
                                          "beta2=1 alpha2=2"),
                                         ("backward", ", infinite sums",
                                          "alpha=inf alpha2=-inf beta2=1"))]
        # A sum of several ranks' addends is rounded to half only once.
        cases += [(f"sampler, {n}, half, {inputs}",
                   f"op=sampler_backward type=half n=3 c={channels(words)} "
                   f"{words} beta=0.5 beta2=-0.7 alpha2=2 inputs={inputs}")
                  for inputs in ("cancel", "cancel+huge", "subnormal")]
    return cases


def refused_cases(item):
    points = ("op=sampler_forward mesh=2 split=C:0 partC=0,1,2 size=6x8 to=5x7 "
              "n=1 c=2 type=float order=NCHW gap=0 alpha2=1 beta2=0 seed=")
    yield item("ranks with different coordinates for channels of one image",
               [[points + "1"], [points + "2"]],
               ["SDG-310 the ranks have different values of [^:]*: "
                "values of grid"], line=points + "1", view="shard")
    # Calls that one device refuses end with its status; in the shard view an
    # SDG code says why.
    for op in "forward", "backward":
        for dim, part in ("H", "0,4,9"), ("N", "0,1,3"):
            for wrong, code, status, words in (
                    ("null", 606, "BAD_PARAM", "a descriptor is NULL"),
                    ("unset", 600, "NOT_SUPPORTED", "was never set"),
                    ("dims", 600, "NOT_SUPPORTED", "5 dimensions, not 4"),
                    ("type", 606, "BAD_PARAM", "cudnnDataType_t 1, x 0"),
                    ("extents", 606, "BAD_PARAM",
                     r"rank 0 is set to \[\d+,4,\d+,5\], but its d?y is "),
                    ("scalar", 606, "BAD_PARAM", "a scalar is NULL"),
                    ("wider", 603, "BAD_PARAM", r"dx is \[3,4,9,9\]; all")):
                if wrong == "wider" and op == "forward":
                    continue
                line = (f"op=sampler_{op} mesh=2 split={dim}:0 "
                        f"part{dim}={part} size=9x8 to=9x5 n=3 c=4 type=float "
                        "order=NCHW gap=0 "
                        f"alpha2=1 beta2=0 seed=1 told={wrong}")
                refused = rf"cudnnSpatialTfSampler.*CUDNN_STATUS_{status}"
                name = f"sampler_{op}, {dim} split, transformer: {wrong}"
                yield item(name, [[line]] * 2,
                           [rf"SDG-{code} .*{words}", refused], line=line,
                           view="shard")
                yield item(name + ", whole view", [[line]] * 2, [refused],
                           line=line, pieces=[None] * 2, view="whole")
    line = line.replace(" told=wider", "")
    for wrong, says in (("extents", "SDG-606.* of rank 1 is set to"),
                        ("unset", "SDG-301.*never set"),
                        ("type", "SDG-301.*cudnnDataType_t 1"),
                        ("null", "SDG-30[01]")):
        yield item(f"rank 1 has another transformer: {wrong}",
                   [[line], [f"{line} told={wrong}"]], [says], line=line,
                   view="shard")
        yield item(f"rank 1 has another transformer: {wrong}, whole view",
                   [[line], [f"{line} told={wrong}"]], ["SDG-300"], line=line,
                   pieces=[None] * 2, view="whole")
    points = ("op=sampler_backward mesh=2 split=H:0 partH=0,60,120 "
              "size=120x90 to=120x90 n=2 c=1 type=float order=NCHW gap=0 "
              "alpha2=1 beta2=0 seed=1")
    for name in "grid", "dgrid":
        short = f"{points} short={name}"
        says = [rf"SDG-616 .*: {name} of cudnnSpatialTfSamplerBackward needs "
                r"\d+ bytes from 0x\w+, where \d+ are allocated"]
        yield item(f"memory of half of {name}", [[short]] * 2, says,
                   line=points, view="shard")
        yield item(f"memory of half of {name}, whole view", [[short]] * 2, says,
                   line=points, pieces=[None] * 2, view="whole")


class Generator(Family):
    """The generator of grids by affine maps, and the gradient of the maps."""
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

    def refused(self, item):
        grid = ("op=grid_forward mesh=2 split=H:0 partH=0,6,12 size=12x8 n=1 "
                "c=2 type=float order=NCHW gap=0 seed=1")
        yield item("a grid generated for a piece", [[grid]] * 2,
                   ["SDG-635"], line=grid, view="shard")

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
