# SPDX-License-Identifier: Apache-2.0
"""Products of matrices: gemm, gemv and cublasLtMatmul, one or a batch, whole or
split over M, N, K and the batch. Words of a case:

size: m x n x k x batch; batch is 0 in a call without a batch. C is m x n, A is
m x k, B is k x n, stored by columns.
rows: cublasLt only: 1 if all matrices are stored by rows, or the letters of
those that are.
one_a, one_b: all products of a batch share this factor. one_c: they share the
old values (cublasLt).
inc_b, inc_c: distance of elements in the vectors of a gemv.
at_a, at_b, at_c: how a matrix is cut if the split does not decide it: "m:0"
(dimension and axis) or "replicated".
"""
import math
from dataclasses import dataclass, field

import numpy as np

from cases import copy_of, draw_parts
from families.family import Family, call
from tensors import Tensor, eps, math_eps

APIS = ("gemm", "gemm64", "gemmex", "strided", "stridedex")
FOLLOWS = ("none", "relu", "gelu", "bias", "relubias", "gelubias")
DIMS = "mnkb"


def even(total, pieces):
    """Returns where an extent is cut by default. Example: 10 in 4 pieces is
    3+3+2+2, cut at 0, 3, 6, 8, 10."""
    sizes = [total // pieces + (i < total % pieces) for i in range(pieces)]
    return [sum(sizes[:i]) for i in range(pieces + 1)]


@dataclass
class Matrix(Tensor):
    """A matrix in memory, with `gap` unused elements after each line.
    apart: distance of neighbouring elements.
    axes: the axes of cut dimensions that the product's split does not name."""
    kind: str = "memory"
    axes: dict = field(default_factory=dict)
    apart: int = 1

    def box(self, setting, rank):
        box = []
        for dim, extent in zip(self.dims, self.size):
            first = self.cut.get(dim)
            if rank is None or first is None:
                box.append(slice(0, extent))
                continue
            split = {dim: self.axes.get(dim, setting.split.get(dim))}
            piece, at = 0, setting.place(rank)
            for axis in split[dim]:
                piece = piece * setting.mesh[axis] + at[axis]
            box.append(slice(first[piece], first[piece + 1]))
        return tuple(box)

    def strides(self, extent):
        stride, step, span = {}, self.apart, 1
        sizes = dict(zip(self.dims, extent))
        if 0 in extent:
            return [1] * len(extent), 0
        order = self.order or self.dims
        for dim in reversed(order):
            stride[dim] = step
            span += (sizes[dim] - 1) * step
            step = step * sizes[dim] + (self.gap if dim == order[-1] else 0)
        return [stride[dim] for dim in self.dims], span


class Matmul(Family):
    ops = ("matmul", "matvec", "matmul_lt")
    sharded = ops
    splits = DIMS
    simple = {"api": "gemm", "ta": "N", "tb": "N", "follow": "none", "rows": 0,
              "apart": 0, "gapc": 0, "ondevice": 0, "halves": 0,
              "ctype": "float", "one_a": 0, "one_b": 0, "one_c": 0, "inc_b": 1,
              "inc_c": 1}

    def complete(self, case):
        plain = {"type": "float", "gap": 0, "alpha": 1, "beta": 0, "repeat": 1,
                 "seed": 1, **self.simple}
        if "ctype" not in case and "type" in case:
            plain["ctype"] = case["type"]
        return {**plain, **case}

    def draw(self, rng, setting, op):
        for _ in range(100):
            case = {"op": op, "mesh": setting.mesh, "split": setting.split,
                    "part": {}, **self.simple}
            number = lambda plain: plain if rng.random() < 0.6 else \
                round(rng.uniform(-2, 2), 3)
            case["alpha"], case["beta"] = number(1), number(0)
            case["type"] = rng.choice(["float"] * 4 + ["double", "double",
                                                       "half", "bfloat16"])
            case["ta"], case["tb"] = rng.choice("NT"), rng.choice("NTC")
            case["gap"] = rng.choice([0, 0, 1, 5])
            case["gapc"] = rng.choice([0, 0, 3])
            case["repeat"] = rng.choice([1, 1, 2])
            case["seed"] = rng.randrange(1 << 30)
            case["strategy"] = setting.strategy
            if setting.bold:
                case["bold"] = 1
            batched = "b" in setting.split or rng.random() < 0.3
            if op == "matmul":
                case["api"] = rng.choice(APIS[3:] if batched else APIS[:3])
                if case["type"] in ("half", "bfloat16"):
                    case["api"] = "stridedex" if batched else "gemmex"
                if case["api"] == "gemm64":
                    case["type"] = "float"
                case["ondevice"] = int(rng.random() < 0.1)
            elif op == "matvec":
                if case["type"] != "double" or batched:
                    case["type"] = "float"
            else:
                case["follow"] = rng.choice(FOLLOWS)
                case["rows"] = rng.choice([0, 0, 1, "".join(
                    x for x in "abcd" if rng.random() < 0.5) or 0])
                case["apart"] = int(rng.random() < 0.4)
            narrow = case["type"] in ("half", "bfloat16")
            case["ctype"] = rng.choice([case["type"], "float"]) if narrow \
                else case["type"]
            if case["type"] == case["ctype"] == "half" and op == "matmul" and \
                    rng.random() < 0.4:
                case["halves"] = 1
                case["alpha"] = rng.choice([1, -2])
                case["beta"] = rng.choice([0, 1, -2])
            if case["follow"][:4] in ("relu", "gelu") and narrow:
                case["alpha"] = 1
            for key in ("one_a", "one_b"):
                case[key] = int(batched and rng.random() < 0.2)
            case["one_c"] = int(batched and case["apart"] and
                                rng.random() < 0.2)
            if op == "matvec":
                for key in ("inc_b", "inc_c"):
                    case[key] = rng.choice([1, 1, 2, 3])
            least = {d: 1 if setting.view == "whole" and rng.random() < 0.3
                     else setting.pieces(d) for d in DIMS}
            size = [rng.randint(least[d], least[d] + 20 + 2 *
                                setting.pieces(d)) for d in "mnk"]
            if setting.view == "whole" and rng.random() < 0.15:
                size = [rng.randint(1, 4) for _ in size]
            if op == "matvec":
                size[1] = 1
            case["size"] = size + [rng.randint(least["b"],
                                               3 + setting.pieces("b"))
                                   if batched else 0]
            for dim in setting.split:
                case["part"][dim] = draw_parts(rng, setting, dim,
                                               self.whole(case, dim))
            for key, text in setting.matrices.items():
                case["at_" + key] = text
            if None not in case["part"].values() and \
                    self.valid(case, setting):
                return case
        return None

    def hard(self, case, kinds):
        # The sums are stored as halves before `follow` is applied.
        return "huge" not in kinds or case["follow"] == "none" or \
            case["ctype"] != "half"

    def whole(self, case, dim):
        return case["size"][DIMS.index(dim)]

    def shorten(self, case, dim):
        case["size"][DIMS.index(dim)] -= 1

    def valid(self, case, setting):
        m, n, k, batch = case["size"]
        if min(m, n, k) < 1 or batch < 0 or ("b" in case["split"] and
                                             batch < 1):
            return False
        if case["op"] == "matvec" and (n != 1 or any(
                "n:" in case.get("at_" + key, "") for key in "abc")):
            return False
        if setting.view == "shard" and "k" in case["split"] and (
                case["ondevice"] or (case["op"] == "matmul_lt" and
                                     case["type"] == "double")):
            return False  # refused
        if setting.view == "shard" and "b" in case["split"] and case["one_c"]:
            return False  # a rank cannot tell that its only product shares C
        for dim, first in case["part"].items():
            if len(first) != setting.pieces(dim) + 1 or \
                    first[-1] != self.whole(case, dim):
                return False
            # A rank without elements could not apply `follow`.
            if setting.view == "shard" and 0 in np.diff(first):
                return False
        return True

    def smaller(self, case):
        for key, value in {"repeat": 1, "gap": 0, "gapc": 0, "alpha": 1,
                           "beta": 0, "ta": "N", "tb": "N", "rows": 0,
                           "apart": 0, "ondevice": 0, "one_a": 0,
                           "one_b": 0, "one_c": 0, "inc_b": 1, "inc_c": 1,
                           "follow": "none"}.items():
            if case.get(key, value) != value:
                yield {**copy_of(case), key: value}
        if case["type"] != "float" and case["op"] == "matmul":
            yield {**copy_of(case), "type": "float", "ctype": "float",
                   "halves": 0}
        for i, dim in enumerate("mnk"):
            if dim not in case["split"] and case["size"][i] > 1:
                new = copy_of(case)
                new["size"][i] //= 2
                yield new
        for dim, first in case["part"].items():
            for piece in range(1, len(first)):
                if first[piece] - first[piece - 1] > 1:
                    new = copy_of(case)
                    new["part"][dim] = first[:piece] + [b - 1 for b in
                                                        first[piece:]]
                    self.shorten(new, dim)
                    yield new

    def strategies(self, case, setting):
        return ("auto",)

    def exact(self, case):
        return False  # a BLAS chooses the order of additions by the sizes

    # ---- the matrices ----------------------------------------------------

    def cuts(self, case, dims, key):
        """Returns how a matrix of these dimensions is cut, and the axes of
        dimensions that the product's split does not name."""
        said = case.get("at_" + key)
        setting = Mesh(case)
        if said is None or key == "c":
            cut = {d: case["part"][d] for d in dims if d in case["part"]}
            if said is None:
                return cut, {}
        else:
            cut = {}
        axes = {}
        if said == "replicated":
            return cut, axes
        for item in said.split(","):
            dim, over = item.split(":")
            over = [int(a) for a in over.split("+")]
            if case["split"].get(dim) == over:
                cut[dim] = case["part"][dim]
                continue
            cut[dim] = even(self.whole(case, dim), setting.pieces(over))
            axes[dim] = over
        return cut, axes

    def matrix(self, case, name, key, rows, columns, batch, **more):
        size = dict(zip(DIMS, case["size"]))
        by_rows = case["rows"] == 1 or name in str(case["rows"])
        outer, inner = (rows, columns) if by_rows else (columns, rows)
        dims = ("b" if batch else "") + outer + inner
        if case["op"] == "matvec" and "n" in dims:
            dims = dims.replace("n", "")
        cut, axes = self.cuts(case, dims, key)
        return Matrix(name, [size[d] for d in dims], dims, cut=cut, axes=axes,
                      **more)

    def tensors(self, case):
        batch = case["size"][3] > 0
        ta, tb = case["ta"] != "N", case["tb"] != "N"
        like = {"type": case["type"], "gap": case["gap"]}
        old = "uniform" if case["beta"] else "nothing"
        a = self.matrix(case, "a", "a", "k" if ta else "m", "m" if ta else "k",
                        batch and not case["one_a"], **like)
        b = self.matrix(case, "b", "b", "n" if tb else "k", "k" if tb else "n",
                        batch and not case["one_b"], apart=case["inc_b"],
                        **like)
        made = [a, b]
        result = {"type": case["ctype"], "gap": case["gapc"]}
        apart = case["apart"] and case["op"] == "matmul_lt"
        c = self.matrix(case, "c", "c", "m", "n",
                        batch and not (apart and case["one_c"]), values=old,
                        out=not apart, apart=case["inc_c"], **result)
        made.append(c)
        if apart:
            d = self.matrix(case, "d", "c", "m", "n", batch, values="nothing",
                            out=True, type=case["ctype"], gap=0)
            made.append(d)
        if "bias" in case["follow"]:
            made.append(Matrix("bias", [case["size"][0]], "m",
                               type=case["ctype"],
                               cut={d: case["part"][d] for d in "m"
                                    if d in case["part"]}))
        return made

    def calls(self, case, local):
        tensors = {t.name: t for t in self.tensors(case)}
        words = {}
        names = {"a": "a", "b": "b", "c": "c", "d": "d"}
        for name, letter in names.items():
            if name not in tensors:
                continue
            t = tensors[name]
            stride, _ = t.strides(local[name])
            if case["op"] == "matvec" and name != "a":
                words["ld" + letter] = stride[-1]
            else:
                outer = stride[-2]
                line = local[name][-1] + t.gap
                words["ld" + letter] = max(outer, line)
            words["s" + letter] = stride[0] if "b" in t.dims else 0
        sizes = self.local_sizes(case, tensors, local)
        return [call(case["op"], case, local, "api", "ta", "tb", "type",
                     "ctype", "alpha", "beta", "follow", "rows", "ondevice",
                     "halves", **sizes, **words)]

    def local_sizes(self, case, tensors, local):
        """Returns the sizes that the call states: the rank's piece of a
        dimension that the product's split cuts; otherwise the whole, even if a
        matrix is cut in it."""
        whole = dict(zip(DIMS, case["size"]))
        sizes = dict(whole)
        for dim in DIMS:
            for name, t in tensors.items():
                if dim in t.dims and dim in case["split"] and \
                        dim not in t.axes and dim in t.cut:
                    sizes[dim] = local[name][t.dims.index(dim)]
        return {"m": sizes["m"], "n": sizes["n"], "k": sizes["k"],
                "batch": sizes["b"]}

    def reference(self, case, t):
        tensors = {x.name: x for x in self.tensors(case)}

        def plain(name, rows, columns):
            """Returns the matrix as [batch,] rows, columns."""
            x, dims = t[name], tensors[name].dims
            if rows not in dims:
                x, dims = x[..., None], dims + rows
            if columns not in dims:
                x, dims = x[..., None], dims + columns
            order = [dims.index(d) for d in ("b" if "b" in dims else "") +
                     rows + columns]
            return x.transpose(order)

        a, b = plain("a", "m", "k"), plain("b", "k", "n")
        c = plain("c", "m", "n")
        value, terms = a @ b, abs(a) @ abs(b)
        value, terms = case["alpha"] * value, abs(case["alpha"]) * terms
        if case["beta"]:
            value = value + case["beta"] * c
            terms = terms + abs(case["beta"] * c)
        if "bias" in case["follow"]:
            value = value + t["bias"][:, None]
            terms = terms + abs(t["bias"][:, None])
        if case["follow"].startswith("relu"):
            value = np.maximum(value, 0)
        if case["follow"].startswith("gelu"):
            x = value
            value = x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) *
                                         (x + 0.044715 * x ** 3)))
            terms = 2 * terms
        # If `follow` is applied, the sums and the bias may already be rounded
        # to the type of the result.
        scale = 1
        if case["follow"] != "none":
            scale = max(1, eps(case["ctype"]) / math_eps(case["ctype"]))
        if case["halves"]:
            scale = eps("half") / eps("float")
        terms = terms * scale
        out = tensors["d" if "d" in tensors else "c"]
        dims = ("b" if "b" in out.dims else "") + "mn"

        def back(x):
            x = np.broadcast_to(x, [case["size"][DIMS.index(d)] for d in dims])
            if case["op"] == "matvec":
                x = x[..., 0]
                return x
            return x.transpose([dims.index(d) for d in out.dims])
        return {out.name: (back(value), back(terms))}


class Mesh:
    def __init__(self, case):
        self.mesh = case["mesh"]

    def pieces(self, axes):
        pieces = 1
        for axis in axes:
            pieces *= self.mesh[axis]
        return pieces
