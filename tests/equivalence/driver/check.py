# SPDX-License-Identifier: Apache-2.0
"""Compares the results that op_case wrote: the pieces with the result of one
rank, and both with a float64 reference."""
import functools

import numpy as np

from cases import case_of, line_of
from families import family_of
from tensors import MOST, TYPES, alter, decode, encode, eps, make, math_eps

# SLACK is the c of |sharded - f64| <= 2 |one - f64| + c eps sum |terms|.
# ONE_SLACK is the c of |one - f64| <= c eps sum |terms|; rounding alone stays
# well below this bound.
SLACK, ONE_SLACK = 4, 64
# Magnitudes below which types lose digits; for half, the spacing of its numbers
# there.
LEAST = {"float": 2.0 ** -126, "bfloat16": 2.0 ** -126, "half": 2.0 ** -24,
         "double": 2.0 ** -1022}

# Infinities are compared, too; numpy need not warn about their differences.
np.seterr(invalid="ignore")


class Wrong(Exception):
    """Says what is wrong with a case."""


def values_of(case):
    """Returns the operands, and their values before the call."""
    return made(line_of(case))


@functools.lru_cache(maxsize=16)
def made(line):
    case = case_of(line)
    tensors = family_of(case).placed(case)
    values = {t.name: make(t, case["seed"]) for t in tensors if not t.at}
    for t in tensors:
        if t.at:
            values[t.name] = values[t.at]
    if case.get("inputs"):
        alter(tensors, values, str(case["inputs"]).split("+"), case["seed"])
    family_of(case).derive(case, values)
    return tensors, {t.name: decode(encode(values[t.name], t.type), t.type)
                     for t in tensors}


def read_output(file, tensors, setting, rank):
    """Reads one write of op_case and returns {name: values}. Raises Wrong if
    the gaps between elements changed."""
    def take(count):
        data = file.read(count)
        if len(data) != count:
            raise Wrong("there is no output")
        return data

    status = int.from_bytes(take(4), "little", signed=True)
    if status != 0:
        raise Wrong(f"got status {status}")
    found = {}
    for t in tensors:
        if t.at:
            continue
        t.rank = rank or 0
        extent = [s.stop - s.start for s in t.box(setting, rank)]
        if 0 in extent:  # no memory
            found[t.name] = np.zeros(extent)
            continue
        size = t.strides(extent)[1] * np.dtype(TYPES[t.type][0]).itemsize
        values, intact = t.read(take(size), extent)
        if not intact:
            raise Wrong(f"the gaps of {t.name} were written to")
        found[t.name] = values
    return found


def same(a, b):
    return (a == b) | (np.isnan(a) & np.isnan(b))


def compare(where, t, found, one, right, box, exact, in_parts=True,
            holes=False, huge=False, tiny=False):
    """Raises Wrong if a tensor's piece `found` is not within its bound.
    one: the tensor on one rank; None if `found` is that.
    right: the float64 values, and the sums of the magnitudes of their terms.
    in_parts: several calls computed the piece.
    holes: operands have infinities. Some engines of the vendor multiply them by
    zeros of the padding, which gives NaN; several ranks may have NaN where one
    rank has it. The engines of the host device skip the padding.
    huge: results may overflow. An element has no bound if one rank's is
    infinite, and may be infinite if its bound is beyond the type's range.
    tiny: devices may replace subnormal numbers by 0, also addends."""
    value, terms = (np.broadcast_to(np.asarray(a, float), t.size)[box]
                    for a in right)
    # Storing rounds once more; a subnormal number may become 0.
    rounding = math_eps(t.type) * terms
    stored = eps(t.type) * abs(value) + LEAST.get(t.type, 0) * (
        SLACK if tiny else 1)
    if one is None:
        most = ONE_SLACK * rounding + stored
    else:
        apart = abs(one[box] - value)
        if holes:  # NaN of the padding gives no bound
            apart = np.where(np.isnan(apart), ONE_SLACK * rounding, apart)
        most = 2 * apart + SLACK * rounding + stored
    if in_parts and t.added:  # addends are rounded to their type
        most = most + eps(t.type) * terms
    lost = np.isnan(found) & (one is None or np.isnan(one[box])) & holes
    good = lost | same(found, value) | \
        (np.isfinite(value) & (abs(found - value) <= most))
    if one is not None and exact:
        good &= same(found, one[box]) | (np.isnan(one[box]) & holes)
    if huge:
        beyond = abs(value) + most >= MOST.get(t.type, np.inf)
        good |= beyond & (found == np.copysign(np.inf, value))
        good |= ~np.isfinite(found if one is None else one[box])
        if t.added:  # an addend may overflow its type
            good |= ~np.isfinite(found) & (terms >= MOST[t.type])
    if good.all():
        return
    at = tuple(np.argwhere(~good)[0])
    index = ",".join(str(i + s.start) for i, s in zip(at, box))
    told = "" if one is None else f", on one rank {one[box][at]:.9g}"
    raise Wrong(f"{where}{t.name}[{index}] is {found[at]:.9g}{told}, in "
                f"float64 {value[at]:.9g}; {(~good).sum()} of {good.size} are "
                "wrong")


def unchanged(where, tensors, values, found, setting, rank):
    written = {t.at or t.name for t in tensors if t.out}
    for t in tensors:
        if t.at or t.name in written:
            continue
        if not same(found[t.name],
                    t.piece(values[t.name], setting, rank)).all():
            raise Wrong(f"{where}{t.name}, an input, was changed")


def repeated(case, file, tensors, setting, rank, where, steady=True):
    """Reads all writes of a case. Returns one of them if they must be equal,
    else all."""
    first, others = None, []
    for _ in range(case.get("repeat", 1)):
        found = read_output(file, tensors, setting, rank)
        for name in first or () if steady else ():
            if not same(first[name], found[name]).all():
                raise Wrong(f"{where}{name} is another when repeated")
        if first and not steady:
            others.append(found)
        first = first or found
    return [first, *others]


def check_case(case, setting, whole, pieces, exact):
    """whole: what one rank wrote; pieces: what each of several wrote. Raises
    Wrong."""
    family = family_of(case)
    tensors, values = values_of(case)
    right = family.reference(case, values)
    holes = family.pads(case) and not exact
    try:
        one = repeated(case, whole, tensors, setting, None, "")[0]
    except Wrong as wrong:
        raise Wrong(f"on one rank: {wrong}") from None
    results = [t for t in tensors if t.out]
    words = str(case.get("inputs")).split("+")
    kinds = {"holes": holes, "huge": "huge" in words,
             "tiny": "subnormal" in words}
    for t in results:
        compare("on one rank ", t, one[t.name], None, right[t.name],
                t.box(setting, None), False, in_parts=bool(setting.wrap),
                **kinds)
    unchanged("on one rank ", tensors, values, one, setting, None)
    last, pending = {}, {}
    for rank, piece in enumerate(pieces):
        where = f"rank {rank}: "
        mine = rank if setting.view == "shard" else None
        try:
            writes = repeated(case, piece, tensors, setting, mine, "",
                              family.steady(case, setting))
        except Wrong as wrong:
            raise Wrong(where + str(wrong)) from None
        found = writes[0]
        for write in writes:
            unchanged(where, tensors, values, write, setting, mine)
        for t in results:
            box = t.box(setting, mine)
            addend = setting.pending(rank, t.cut)
            if t.summed and addend:
                sums = pending.setdefault((t.name, str(box)), (t, box, {}))
                sums[2][addend] = found[t.name]
                continue
            # If ranks hold terms of a result, the first rank has the total.
            first = mine is None or not any(t.term(setting, mine))
            for write in writes:
                compare(where, t, write[t.name], one[t.name] * first,
                        [a * first for a in right[t.name]], box,
                        exact and family.exact(case) and
                        (family.anywhere or not family.scattered(case)),
                        **kinds)
            # Ranks that hold the same part must have the same bits.
            key = (t.name, first, tuple((s.start, s.stop) for s in box))
            if not same(last.setdefault(key, found[t.name]),
                        found[t.name]).all():
                raise Wrong(f"{where}{t.name} is another than on a rank "
                            "before it")
    for t, box, addends in pending.values():
        # Each addend contains its rank's old values.
        kept = (len(addends) - 1) * family.kept(case)
        more = kept * values[t.name] if kept else 0
        value, terms = right[t.name]
        compare("all ranks: ", t, sum(addends.values()),
                one[t.name] + more, [value + more, terms + abs(more)], box,
                False, **kinds)
