# SPDX-License-Identifier: Apache-2.0
"""The base class of the families of ops: what each family must define, the
words that every case has, and how a failing case is made smaller."""
from cases import DIMS, copy_of, draw_parts


class Family:
    """ops: the rows of op_case that the family makes cases for.
    sharded: the ops that can run on pieces; the tester runs other ops on one
    rank and in the whole view only.
    splits: letters of dimensions that may be cut.
    views: the views that the family supports.
    periodic: dimensions may wrap around.
    keeps: a result may keep its old values in part (beta); see kept().
    merges: the family can run with `window = global` in the rules.
    combines: one element of a result needs elements of several ranks, so sundog
    takes a dimension with one element on each rank for a replicated one.
    preload: the calls are functions of sundog, so one rank needs it preloaded,
    too.
    lists: words that have one number for each spatial dimension, with the least
    value of a number.
    simple: other words with their simplest values, which smaller() tries.
    moves: tensors that may be cut differently from the others.
    anywhere: exact results have the same bits even if operands were moved.
    sizes_tell: if a tensor has neither a section nor a tag, the sizes of the
    other tensors show whether it is whole on every rank."""
    ops = ()
    sharded = ()
    splits = "NDHW"
    views = ("shard", "whole")
    periodic = False
    merges = False
    combines = False
    keeps = False
    preload = False
    lists = {}
    simple = {}
    own_strategies = ()  # replace repair and extend
    moves = ()
    anywhere = False
    sizes_tell = True

    # ---- what each family defines ----------------------------------------

    def words(self, rng, setting, case):
        """Adds the family's own words to a case that has n, c, type, order, gap
        and so on. draw() chooses `size` afterwards, at least least_size()."""

    def least_size(self, case, i):
        """Returns the least extent of spatial dimension i."""
        return 1

    def legal(self, case):
        """Returns whether cuDNN accepts the case."""
        return True

    def tensors(self, case):
        """Returns the operands, in any order."""
        raise NotImplementedError

    def derive(self, case, values):
        """Computes inputs that depend on other inputs (the y of a gradient)."""

    def calls(self, case, local):
        """Returns lines for op_case. local: extents of each tensor on this
        rank."""
        raise NotImplementedError

    def reference(self, case, values):
        """Returns for each result its float64 value, and the sum of the
        magnitudes of the terms in it. values: the operands before the call."""
        raise NotImplementedError

    def exact(self, case):
        """Returns whether N ranks must give the same bits as one rank, if the
        host device uses the same engine."""
        return True

    def pads(self, case):
        """Returns whether a device may multiply infinities by zeros of the
        padding (which gives NaN)."""
        return False

    def strategies(self, case, setting):
        """Returns the strategies that every rank supports."""
        return ("auto", "repair", "extend", "adjoint")

    def kept(self, case):
        """Returns the factor of the old values in each rank's addend, if the
        program must add the addends itself (sum = no); 0 unless `keeps`."""
        return case.get("beta", 0) * self.keeps

    def steady(self, case, setting):
        """Returns whether a repeated call must give the same bits, although its
        operands may be in other pieces by then (whole view)."""
        return True

    def whole(self, case, dim):
        """Returns the extent that case["part"] cuts."""
        return extent(case, dim)

    def shorten(self, case, dim):
        """Makes the extent of whole() smaller by one."""
        set_extent(case, dim, extent(case, dim) - 1)

    def named(self):
        """Returns named cases: (name, line), as in driver/named."""
        return ()

    def refused(self, item):
        """Returns calls that must end with an error that says what is wrong:
        items, as in driver/refused.py."""
        return ()

    def setting(self, rng, view):
        """Returns a Setting for cases of this family alone; None: the family
        can use any setting."""

    def hard(self, case, kinds):
        """Returns whether one device computes the op correctly for inputs of
        these kinds (see alter() in driver/tensors.py)."""
        return True

    def free(self, name):
        """Returns whether the program may choose the tensor's memory layout."""
        return name not in ("b", "scale", "bias", "mean", "var", "dscale",
                            "dbias") and name[:5] not in ("runni", "saved")

    def recut(self, rng, setting, case):
        """Changes how results are cut, if a program may do so."""

    def meets(self, case, tensors):
        """Returns whether sundog can move the operands to where one call can
        use them, if they are cut in different places."""
        return True

    # ---- what all families share -------------------------------------------

    def complete(self, case):
        """Returns the case with all words that its line left out."""
        spatial = len(case["size"])
        plain = {"n": 1, "c": 1, "type": "float", "order": dims_of(case),
                 "gap": 0, "alpha": 1, "beta": 0, "repeat": 1, "seed": 1,
                 **self.simple,
                 **{key: [least] * spatial for key, least in
                    self.lists.items()}}
        return {**plain, **case}

    def placed(self, case):
        """Returns the operands, placed by the case's words on.NAME and laid out
        by its words lay.NAME."""
        tensors = self.tensors(case)
        for t in tensors:
            if "on." + t.name in case:
                t.place(case["on." + t.name])
            if "lay." + t.name in case:
                t.lay(case["lay." + t.name])
        return tensors

    def scattered(self, case):
        return any(key.startswith("on.") for key in case)

    def scatter(self, rng, setting, case):
        """Sometimes cuts some operands, but not all, in other places."""
        if setting.view != "shard" or setting.bold or \
                all(setting.pieces(dim) == 1 for dim in setting.split) or \
                rng.random() > 0.3:
            return
        tensors = self.tensors(case)
        may = [t for t in tensors if t.name in self.moves and
               t.kind == "tensor" and not t.at and
               not any(o.at == t.name for o in tensors)]
        rng.shuffle(may)
        for t in may[:rng.randint(1, max(1, len(may) - 1))]:
            word = self.elsewhere(rng, setting, case, t)
            if word and len(may) > 1:
                case["on." + t.name] = word
                case["own_sizes"] = 1
        # If one tensor of a call is tagged "local", the split ones need tags.
        for t in self.placed(case) if "local" in case.values() else ():
            if t.name in (m.name for m in may) and t.cut and not t.tag:
                case["on." + t.name] = words_of(t.cut, setting.split)

    def relay(self, rng, case):
        """Sometimes gives tensors different layouts: another order of
        dimensions, and unused elements after any of them (with "r" more of
        them on later ranks)."""
        if case["type"] == "int8" or rng.random() < 0.5:
            return  # GPUs take int8 in one layout only
        tensors = self.tensors(case)
        shared = {t.at for t in tensors}
        for t in tensors:
            if t.kind == "tensor" and not t.at and t.name not in shared and \
                    self.free(t.name) and rng.random() < 0.6:
                order = "".join(rng.sample(t.dims, len(t.dims)))
                gaps = [d for d in order if rng.random() < 0.3]
                case["lay." + t.name] = order + "".join(
                    f"/{d}{rng.randint(1, 3)}" + rng.choice(["", "r"])
                    for d in gaps)

    def elsewhere(self, rng, setting, case, t):
        """Returns a word for Tensor.place(), or None."""
        plain = setting.sum == "yes" and not setting.wrap
        kind = rng.choice(["parts", "parts", "all"] +
                          ["split", "split"] * plain)
        if kind == "all" and t.cut:
            return rng.choice(["-", "local"]) if plain else "-"
        split = {dim: setting.split[dim] for dim in t.cut}
        if kind == "all":
            return None
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
            least = 1 + (self.combines and pieces > 1)
            if size < pieces * least:
                return None
            first = [0] + sorted(rng.sample(range(1, size), pieces - 1)) + \
                [size]
            if self.combines and pieces > 1 and max(
                    b - a for a, b in zip(first, first[1:])) == 1:
                return None
            cut[dim] = first
        return words_of(cut, split if kind == "split" else {}) or None

    def draw(self, rng, setting, op):
        """Returns a random case, or None if 300 tries found no legal one."""
        for _ in range(300):
            case = {"op": op, "mesh": setting.mesh, "split": setting.split,
                    "part": {}}
            spatial = rng.choice([1, 2, 2, 2, 3])
            if "D" in setting.split:
                spatial = 3
            elif "W" in setting.split and spatial == 1:
                spatial = 2
            dims = DIMS[5 if spatial == 3 else 4]
            number = lambda plain: plain if rng.random() < 0.6 else \
                round(rng.uniform(-2, 2), 3)
            case["type"] = rng.choice(["float"] * 6 + ["double", "double",
                                                       "half", "bfloat16"])
            # Sometimes there are fewer elements than ranks.
            few = setting.view == "whole" and rng.random() < 0.15
            pieces = lambda dim: 1 if few else setting.pieces(dim)
            case["n"] = rng.randint(1, 3) + pieces("N") - 1
            case["c"] = rng.randint(1, 4) + pieces("C") - 1
            last = dims[0] + dims[2:] + "C"
            case["order"] = rng.choice(
                [dims] * 6 + [last] * 3 +
                ["".join(rng.sample(dims, len(dims)))])
            case["gap"] = rng.choice([0, 0, 0, 0, 1, 3])
            case["alpha"], case["beta"] = number(1), number(0)
            case["repeat"] = rng.choice([1, 1, 2, 3])
            case["seed"] = rng.randrange(1 << 30)
            case["strategy"] = setting.strategy
            if setting.wrap:
                case["wrap"] = setting.wrap
            if setting.sum != "yes":
                case["sum"] = setting.sum
                case["beta"] *= self.keeps
            if setting.pooling:
                case["pooling"] = setting.pooling
            if setting.bold:
                case["bold"] = 1
            if setting.view == "whole":
                case["spread"] = rng.choice([0, 1, 1, 2])
            case["size"] = [1] * (len(dims) - 2)
            self.words(rng, setting, case)
            most = {1: 60, 2: 20, 3: 9}[spatial]
            for i, dim in enumerate(dims[2:]):
                least = self.least_size(case, i)
                case["size"][i] = rng.randint(
                    max(least, pieces(dim)),
                    max(least, 3 if few else most) + 3 * pieces(dim))
            if spatial == 1:
                case["size"][1] = max(1, self.least_size(case, 1))
            for dim in setting.split:
                case["part"][dim] = draw_parts(rng, setting, dim,
                                               self.whole(case, dim))
            if None in case["part"].values():
                continue
            self.recut(rng, setting, case)
            self.scatter(rng, setting, case)
            self.relay(rng, case)
            if self.valid(case, setting) and (
                    setting.bold or
                    setting.strategy in self.strategies(case, setting)):
                return case
        return None

    ambiguous = staticmethod(all)

    def one_each(self, case):
        """Returns whether D, H or W is cut, and no rank has more than one
        element in any of them. This must hold for all tensors of the case;
        networks set `ambiguous` to any(), because each of their calls has few
        tensors."""
        def single(t):
            return not any(b - a > 1 for dim, size in zip(t.dims, t.size)
                           if dim in "DHW"
                           for cut in [t.cut.get(dim, [0, size])]
                           for a, b in zip(cut, cut[1:]))

        def each(tensors):
            cut = [t for t in tensors if set(t.cut) & set("DHW")]
            return bool(cut) and self.ambiguous(map(single, cut))

        return each(self.tensors(case)) or each(self.placed(case))

    def valid(self, case, setting):
        """Returns whether the case is legal and, in the shard view, gives every
        rank a part of every tensor."""
        dims = dims_of(case)
        if sorted(case["order"]) != sorted(dims) or not self.legal(case):
            return False
        if case.get("sum", "yes") != "yes" and case["type"] not in (
                "float", "double") and any(t.summed for t in
                                           self.tensors(case)):
            return False  # addends would lose too many digits
        if any(dim not in dims for dim in case["split"]):
            return False
        for dim, first in case["part"].items():
            if len(first) != setting.pieces(dim) + 1 or \
                    first[-1] != self.whole(case, dim):
                return False
        if setting.view == "shard" and self.one_each(case):
            return False  # sundog refuses it: the ranks may have the same row
        for tensor in self.placed(case):
            if any(extent < 1 for extent in tensor.size):
                return False
            for dim, first in tensor.cut.items():
                if first[-1] != tensor.size[tensor.dims.index(dim)] or \
                        len(first) != setting.pieces(dim, tensor.axes) + 1:
                    return False
                sizes = [b - a for a, b in zip(first, first[1:])]
                if setting.view == "shard" and (min(sizes) < 1 or (
                        (self.combines or self.scattered(case)) and
                        len(sizes) > 1 and max(sizes) == 1)):
                    return False
        if "named" in case and not self.named_apart(case, setting):
            return False
        if not setting.bold and self.unread(case):
            return False
        return not self.scattered(case) or setting.bold or \
            self.meets(case, self.placed(case))

    def unread(self, case):
        """Returns whether sundog refuses the case with SDG-603: a tensor is
        whole on every rank, but its section splits it, so sundog takes it for
        pieces; another tensor is tagged "local"; and no tensor of the call is
        cut, which would show that the first one is whole."""
        placed = self.placed(case)
        return any(case.get("on." + t.name) == "-" for t in placed) and \
            any(t.tag == "local" for t in placed) and \
            not any(t.cut for t in placed)

    def named_apart(self, case, setting):
        """Returns whether the [local] section matches whole tensors only: no
        piece of a split tensor on any rank has the same extents."""
        def likes(t):
            pieces = [[s.stop - s.start for s in t.box(setting, rank)]
                      for rank in range(setting.ranks())]
            whole = not t.cut and not t.tag
            return (t.size == case["named"]) == (case["named"] in pieces) and \
                (t.size != case["named"] or whole)
        tensors = [t for t in self.placed(case) if t.kind == "tensor"]
        return all(map(likes, tensors)) and \
            any(t.size == case["named"] for t in tensors)

    def smaller(self, case):
        """Yields simpler variants of the case; each changes one word."""
        simple = {"repeat": 1, "check": 0, "keep": 0, "cost": 0, "gap": 0,
                  "order": dims_of(case), "spread": 1, "inputs": "", "type": "float", "beta": 0, "alpha": 1,
                  **self.simple}
        for key, value in simple.items():
            if key in case and case[key] != value:
                yield {**copy_of(case), key: value}
        for key in case:
            if key.startswith(("on.", "lay.")):
                yield {k: v for k, v in copy_of(case).items() if k != key}
        if "ycut" in case:
            yield {key: value for key, value in copy_of(case).items()
                   if key not in ("ycut", "own_sizes")}
        for dim in "NC":
            if dim not in case["split"] and extent(case, dim) > 1:
                yield {**copy_of(case), dim.lower(): 1}
        for key, least in self.lists.items():
            for i, value in enumerate(case[key]):
                if value > least:
                    new = copy_of(case)
                    new[key][i] = value - 1
                    yield new
        for i, dim in enumerate(dims_of(case)[2:]):
            if dim not in case["split"] and case["size"][i] > 1:
                new = copy_of(case)
                new["size"][i] = max(1, case["size"][i] // 2)
                yield new
        for dim, first in case["part"].items():
            for piece in range(1, len(first)):
                if first[piece] - first[piece - 1] > 1:
                    new = copy_of(case)
                    new["part"][dim] = first[:piece] + [b - 1 for b in
                                                        first[piece:]]
                    self.shorten(new, dim)
                    yield new
        if len(case["mesh"]) == 1 and case["mesh"][0] > 1 and case["split"]:
            for drop in range(1, case["mesh"][0]):
                new = copy_of(case)
                new["mesh"] = [case["mesh"][0] - 1]
                for first in new["part"].values():
                    del first[drop]
                yield new


def words_of(cut, split):
    """Returns the word for Tensor.place() that describes this cut."""
    return "/".join(f"{dim}:" + "+".join(map(str, split.get(dim, ()))) + "@" +
                    ",".join(map(str, first)) for dim, first in cut.items())


def dims_of(case):
    return DIMS[len(case["size"]) + 2]


def extent(case, dim):
    if dim in "NC":
        return case[dim.lower()]
    return case["size"][dims_of(case).index(dim) - 2]


def set_extent(case, dim, value):
    if dim in "NC":
        case[dim.lower()] = value
    else:
        case["size"][dims_of(case).index(dim) - 2] = value


def shape(case):
    """Returns the extents of the activation that the case describes."""
    return [case["n"], case["c"]] + case["size"]


def common(case):
    """Returns the arguments of Tensor that all activations of the case
    share."""
    return {"dims": dims_of(case), "type": case["type"],
            "order": case["order"], "gap": case["gap"]}


def old(case):
    """Returns the kind of a result's values before the call. The call reads
    them only if beta is not 0."""
    return "uniform" if case["beta"] else "nothing"


def blend(case, value, terms, before):
    """Returns alpha * value + beta * before, and the same of the terms."""
    value, terms = case["alpha"] * value, abs(case["alpha"]) * terms
    if case["beta"]:
        value = value + case["beta"] * before
        terms = terms + abs(case["beta"] * before)
    return value, terms


def call(row, case, tensors, *keys, **words):
    """Returns a line for op_case: the tensors under their own names, and the
    case's words `keys`."""
    words = {**{name: name for name in tensors},
             **{key: case[key] for key in keys}, **words}
    return row + "".join(
        f" {key}=" + ("x".join(map(str, value)) if isinstance(value, list)
                      else str(value)) for key, value in words.items())


