# SPDX-License-Identifier: Apache-2.0
"""Calls whose operands are placed at random: split as a [shard] section says;
split by a tag in other parts, dimensions or over other axes; whole on every
rank, because a tag, a [local] section or nothing says otherwise. Each call must
be carried out, or be refused with an SDG code on every rank. A call that one
device accepts must never get a cuDNN status without an SDG code."""
import random
import re
import time

from cases import Setting, draw_mesh, line_of
from families import FAMILIES
from families.family import words_of

TRIES = 60


def anywhere(rng, setting, t):
    """Returns a word for Tensor.place(); "": split as the section says."""
    kind = rng.choice(["", "", "parts", "split", "split", "-", "local"])
    if kind in ("", "-", "local"):
        return kind
    split = {dim: setting.split[dim] for dim in t.cut}
    if kind == "split":
        split = {}
        for axis in sorted({a for axes in setting.split.values()
                            for a in axes}):
            if rng.random() < 0.85:
                split.setdefault(rng.choice(t.dims), []).append(axis)
    cut = {}
    for dim, axes in split.items():
        pieces = 1
        for axis in axes:
            pieces *= setting.mesh[axis]
        size = t.size[t.dims.index(dim)]
        if size < pieces:
            return ""
        cut[dim] = [0] + sorted(rng.sample(range(1, size), pieces - 1)) + \
            [size]
    return words_of(cut, split if kind == "split" else {})


def scatter(rng, setting, family, case):
    tensors = family.tensors(case)
    may = [t for t in tensors if t.name in family.moves and
           t.kind == "tensor" and not t.at and
           not any(o.at == t.name for o in tensors)]
    if not may:
        return
    for t in may:
        word = anywhere(rng, setting, t)
        if word:
            case["on." + t.name] = word
            case["own_sizes"] = 1
    if rng.random() < 0.5:  # a [local] section matches its extents
        t = rng.choice(may)
        case["named"], case["own_sizes"] = list(t.size), 1
        for other in may:
            if other.size == t.size:
                case["on." + other.name] = "-"


def is_said(family, case):
    """Returns whether sundog can know how all tensors are placed. A tensor that
    is whole on every rank without a tag or section shows this only if another
    tensor of the call is cut."""
    placed = [t for t in family.placed(case) if t.name in family.moves]
    unsaid = [t for t in placed if case.get("on." + t.name) == "-" and
              t.size != case.get("named")]
    if unsaid and not any(t.cut for t in placed):
        return False
    # It may be whole on every rank, or pieces of the same size.
    if unsaid and not family.sizes_tell:
        return False
    scaled = "scale" in {t.name for t in family.tensors(case)}
    asked = scaled or unsaid and \
        case["op"] in ("dropout", "neighborhood_forward")
    return not asked or family.meets(case, family.placed(case))


def draw(rng):
    """Returns a case, or None."""
    mesh, split = draw_mesh(rng, rng.choice(["H", "H", "HW", "CHW", "DHW"]))
    setting = Setting(mesh, split, "shard",
                      rng.choice(["auto", "repair", "extend"]))
    if setting.ranks() < 2 or setting.ranks() > 4:
        return None
    setting.bold = True
    family, op = rng.choice([(family, op) for family in FAMILIES
                             for op in family.ops if family.moves])
    if not set(split) <= set("NCDHW") or op not in family.sharded:
        return None
    case = family.draw(rng, setting, op)
    if not case:
        return None
    for _ in range(TRIES):
        new = dict(case)
        scatter(rng, setting, family, new)
        if family.scattered(new) and family.valid(new, setting) and \
                is_said(family, new):
            return new
    return None


def run_any_place(runner, options, report):
    seconds = options.minutes * 60 if options.minutes else options.seconds
    end = time.time() + seconds
    runner.view = "shard"
    count = failed = number = refused = 0
    while time.time() < end and failed < options.most:
        number += 1
        case = draw(random.Random(f"anyplace/{options.seed}/{number}"))
        if not case or options.only and not re.search(options.only,
                                                      case["op"]):
            continue
        if not runner.accepted([case]):
            continue
        count += 1
        runner.refusals = 0
        for what in runner.faults([case]).values():
            failed += 1
            report(runner, case, what, options)
        refused += runner.refusals
    print(f"{count} calls of operands anywhere (seed {options.seed}), "
          f"{refused} refused, {failed} failed; one device refused "
          f"{runner.refused_alone} others")
    return failed
