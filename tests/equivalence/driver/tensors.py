# SPDX-License-Identifier: Apache-2.0
"""How families describe their operands: a tensor with its global extents, its
cut over the ranks, its layout in memory and its values. Converts these to the
bytes of a rank's memory, and back."""
import re
import zlib
from dataclasses import dataclass, field

import numpy as np

from cases import AXES

# For each type how it is stored, and the distance from 1 to the next number.
TYPES = {"float": (np.float32, 2.0 ** -23), "double": (np.float64, 2.0 ** -52),
         "half": (np.float16, 2.0 ** -10), "bfloat16": (np.uint16, 2.0 ** -7),
         "int8": (np.int8, 0), "int32": (np.int32, 0)}
# Gaps between elements hold this number before a call and must hold it after.
MARK = 12345

# The largest number of each type; and the powers of two that make the values of
# make() huge but not infinite, and subnormal.
MOST = {"half": 65504.0, "float": float(np.finfo(np.float32).max),
        "bfloat16": 2.0 ** 127 * (2 - 2.0 ** -7),
        "double": np.finfo(np.float64).max}
HUGE = {"half": 15, "float": 60, "bfloat16": 60, "double": 500}
TINY = {"half": -14, "float": -129, "bfloat16": -126, "double": -1030}

RANGES = {"uniform": (-1, 1), "positive": (0.25, 2), "around1": (0.75, 1.25)}


def eps(type):
    return TYPES[type][1]


def math_eps(type):
    """Returns the eps of the arithmetic that devices use for this type."""
    return eps("double" if type == "double" else "float")


def encode(values, type):
    if type != "bfloat16":
        return np.asarray(values).astype(TYPES[type][0])
    bits = np.asarray(values).astype(np.float32).view(np.uint32)
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def decode(stored, type):
    if type == "bfloat16":
        stored = (stored.astype(np.uint32) << 16).view(np.float32)
    return stored.astype(np.float64)


@dataclass
class Tensor:
    """One operand of a case.
    size: global extents. dims: their letters.
    cut: for each dimension that is cut its offsets, from 0 to its extent.
    order: the letters in the order of memory, outermost first.
    gap: unused elements after each line. gaps: unused elements after other
    dimensions; the gaps in `each` grow with the rank.
    values: see make(); or an array.
    at: the tensor with the same memory.
    out: a result, which is compared.
    spread: in the whole view, the least level of the case's word `spread` that
    leaves this tensor in pieces before the call.
    summed: a sum over all ranks, which the rules may leave to the program.
    axes: for each cut dimension its axes, if they differ from the setting's.
    terms: axes, with their extents, along which the ranks hold terms that
    `combine` adds or takes the maximum of. An input has a further dimension of
    terms for each axis. For a result the first rank along the axes has the
    total, the others zeros.
    added: several ranks' results are added in the tensor's type.
    tag: the text of the program's tag. graph: it is one of memory, because an
    operation graph describes the tensor.
    lengths: of a sequence's batches and beams; None: all have full length."""
    name: str
    size: list
    dims: str
    type: str = "float"
    kind: str = "tensor"  # or "filter", "sequence", "memory"
    cut: dict = field(default_factory=dict)
    order: str = ""
    gap: int = 0
    values: object = "uniform"
    out: bool = False
    at: str = None
    spread: int = 0
    summed: bool = False
    axes: dict = None
    terms: list = field(default_factory=list)
    combine: str = "sum"
    added: bool = False
    tag: str = ""
    graph: bool = False
    lengths: list = None
    gaps: dict = field(default_factory=dict)
    each: set = field(default_factory=set)
    rank: int = 0

    def packed(self):
        """Returns the format's name if a descriptor can be set with it, else ""."""
        dims = self.dims
        if not isinstance(dims, str):  # no image
            return ""
        last = dims[0] + dims[2:] + dims[1]
        return "" if self.gap or self.gaps else {dims: "nchw", last: "nhwc"}.get(
            self.order or dims, "")

    def place(self, word):
        """Cuts the tensor differently. "-" and "local" (tagged): whole on every
        rank. Otherwise each item is DIM:AXES@CUTS; a tag names the axes if AXES
        are given. Examples: H:0@0,3,8/W:1@0,2,5 and H:@0,3,8."""
        self.cut, self.axes, items = {}, None, []
        if word == "local":
            self.tag = word
        for item in word.split("/") if word not in ("-", "local") else ():
            dim, axes, first = re.fullmatch(r"(\w+):([0-9+]*)@(.*)",
                                            item).groups()
            self.cut[dim] = [int(v) for v in first.split(",")]
            if axes:
                self.axes = self.axes or {}
                self.axes[dim] = [int(a) for a in axes.split("+")]
                items.append(f"{dim}:" + "+".join(AXES[int(a)] for a in
                                                  axes.split("+")))
        self.tag = self.tag or ",".join(items)

    def lay(self, word):
        """Changes the layout in memory. The word has the order of dimensions,
        then the numbers of unused elements after some dimensions; with r, the
        rank's number is added. Example: NHWC/C2/N1r."""
        self.order, *gaps = word.split("/")
        self.gaps = {gap[0]: int(gap[1:].rstrip("r")) for gap in gaps}
        self.each = {gap[0] for gap in gaps if gap[-1] == "r"}

    def box(self, setting, rank):
        """Returns a rank's part as slices; the whole if rank is None."""
        box = []
        for dim, extent in zip(self.dims, self.size):
            first = self.cut.get(dim)
            if rank is None or first is None:
                box.append(slice(0, extent))
            else:
                piece = setting.piece(rank, dim, self.axes)
                box.append(slice(first[piece], first[piece + 1]))
        return tuple(box)

    def length(self, box):
        """Returns the lengths of the sequences inside a box, for each batch and
        beam."""
        whole = np.array(self.lengths).reshape(-1, self.size[2])
        return [int(n) for n in np.clip(
            whole[box[1], box[2]] - box[0].start, 0,
            box[0].stop - box[0].start).ravel()]

    def term(self, setting, rank):
        """Returns which of the terms a rank has."""
        at = setting.place(rank)
        return tuple(at[axis] for axis, _ in self.terms)

    def piece(self, values, setting, rank):
        """Returns a rank's part of an input's values; all if rank is None."""
        if self.terms and not self.out:
            over = tuple(range(len(self.terms)))
            values = getattr(values, self.combine)(axis=over) \
                if rank is None else values[self.term(setting, rank)]
            values = decode(encode(values, self.type), self.type)
        return values[self.box(setting, rank)]

    def strides(self, extent):
        """Returns the stride of each dimension, in elements, and the number of
        elements from the first to the last. `gap` follows dimension W."""
        stride, step, span = {}, 1, 1
        sizes = dict(zip(self.dims, extent))
        for dim in reversed(self.order or self.dims):
            stride[dim] = step
            span += (sizes[dim] - 1) * step
            step = step * sizes[dim] + self.gaps.get(
                dim, self.gap if dim == "W" else 0) + \
                (self.rank if dim in self.each else 0)
        return [stride[dim] for dim in self.dims], span

    def window(self, memory, extent):
        """Returns the elements of a piece in its memory, as an array."""
        stride, _ = self.strides(extent)
        return np.lib.stride_tricks.as_strided(
            memory, extent, [s * memory.itemsize for s in stride])

    def image(self, values):
        """Returns a piece's memory: `values` in their places, MARK in the
        gaps."""
        _, span = self.strides(values.shape)
        memory = encode(np.full(span, float(MARK)), self.type)
        self.window(memory, values.shape)[...] = encode(values, self.type)
        return memory

    def read(self, data, extent):
        """Returns the values in a piece's memory, and whether its gaps are
        unchanged."""
        memory = np.frombuffer(data, TYPES[self.type][0]).copy()
        window = self.window(memory, extent)
        values = window.copy()
        window[...] = encode(MARK, self.type)
        intact = bool((memory == encode(MARK, self.type)).all())
        return decode(values, self.type), intact


def make(tensor, seed):
    """Returns the values of a tensor as float64. Its type can store them
    exactly, and half of each value, too, because they lie on a grid of powers
    of two. tensor.values is one of:

    uniform    in (-1, 1)
    positive   in (0.25, 2)
    ties       a few different values, so that many elements are equal
    around1    in (0.75, 1.25), so that products do not vanish
    a number   this number plus values in (-1, 1)
    (a, b)     in (a, b)
    nothing    NaN, for tensors that calls only write
    """
    size = tensor.size if tensor.out else \
        [n for _, n in tensor.terms] + tensor.size
    if isinstance(tensor.values, np.ndarray):
        return decode(encode(tensor.values, tensor.type), tensor.type)
    if tensor.values == "nothing":
        return np.full(size, np.nan)
    rng = np.random.default_rng([seed, zlib.crc32(tensor.name.encode())])
    grid = 2.0 ** (10 if tensor.type == "half" else 20)
    if tensor.values == "ties":
        values = rng.integers(-2, 3, size) / 2.0
    elif isinstance(tensor.values, tuple):
        values = rng.uniform(*tensor.values, size)
    elif tensor.values in RANGES:
        values = rng.uniform(*RANGES[tensor.values], size)
    else:
        values = tensor.values + rng.uniform(-1, 1, size)
    values = np.round(values * grid) / grid
    return decode(encode(values, tensor.type), tensor.type)


def alter(tensors, values, kinds, seed):
    """Makes inputs hard in the ways that `kinds` lists:

    cancel     sums along a cut dimension are exactly 0, because one input is an
               odd function along it and all others are even
    huge       that input is so large that a half overflows when it holds a sum
               of a few elements; float, in which devices add, does not
    subnormal  that input has subnormal values
    """
    rng = np.random.default_rng([seed, 1])
    inputs = [t for t in tensors if not t.at and not t.out and
              t.type in MOST and values[t.name].ndim == len(t.size) and
              isinstance(t.values, str)]
    if not inputs:
        return
    cut = [t for t in inputs if any(len(f) > 2 for f in t.cut.values())]
    one = rng.choice(np.array(cut or inputs, dtype=object))
    for t in inputs if "cancel" in kinds else ():
        for dim, first in t.cut.items():
            if len(first) > 2:
                axis = t.dims.index(dim)
                front = [slice(None)] * values[t.name].ndim
                front[axis] = slice(0, (t.size[axis] + 1) // 2)
                back = np.flip(values[t.name], axis)
                back = -back if t is one else back
                back[tuple(front)] = values[t.name][tuple(front)]
                if t is one and t.size[axis] % 2:
                    front[axis] = t.size[axis] // 2
                    back[tuple(front)] = 0
                values[t.name] = back
                break
    power = (HUGE[one.type] if "huge" in kinds else 0) + \
        (TINY[one.type] if "subnormal" in kinds else 0)
    values[one.name] = values[one.name] * 2.0 ** power
