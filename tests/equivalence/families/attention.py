# SPDX-License-Identifier: Apache-2.0
"""Multi-head attention, forward and with its gradients. The reference follows
the definition: a head of query t is the mean of the values that t sees,
weighted by the softmax of the products of t with their keys."""
import numpy as np

from cases import HERE, Setting, copy_of
from families.family import Family, call, words_of
from tensors import Tensor, eps, math_eps

DIMS = ("SEQ", "BATCH", "BEAM", "HEAD")
AXES = ("0123", "1023", "2103", "0213", "1203", "2013")
FAR = 1 << 20  # the window has no bound on this side
SIZES = ("q", "k", "v")


class Attention(Family):
    """Words of a case:
    window: how many keys before and after itself a query sees.
    seq, keys: the lengths to which the sequences of queries and of keys are
    padded; keys is seq if it is not given.
    lengths, klengths: the lengths of the sequences of queries (for each batch
    and beam) and of keys (for each batch) without padding; 0: all are full.
    nan: padding is NaN. hole: the index of a key that is NaN; -1: none.
    sizes: elements of a query's, a key's and a value's vector.
    projected: elements of these and of the output's vector after the
    projection; 0: no projection.
    axes: for q, k, v and o, the number of an order in AXES.
    here: "queries" or "keys": every rank has all of these, and `part` cuts the
    other sequences. by: "tag" or "section", whichever says so in the shard
    view."""
    ops = sharded = ("attention",)
    splits = DIMS
    own_strategies = ("auto", "halo", "heads", "gather")
    plain = {"type": "float", "n": 1, "beam": 1, "heads": 1, "sizes": [4, 4, 4],
             "projected": [0, 0, 0, 0], "biases": 0, "residual": 0, "same": 0,
             "train": 1, "adds": 0, "axes": [0, 0, 0, 0], "scale": 0.5,
             "window": [2, 3], "open": 0, "drop": 0, "only": -1,
             "twice": 0, "ragged": 0, "lengths": 0, "klengths": 0, "nan": 0,
             "here": "", "by": "tag", "hole": -1, "repeat": 1, "seed": 1}

    def complete(self, case):
        case = {**self.plain, **case}
        case.setdefault("seq", case["part"].get("SEQ", [0, 12])[-1])
        case.setdefault("keys", case["seq"])
        return case

    def setting(self, rng, view):
        """Returns a setting; its cases share a window, because that is in the
        rules."""
        ranks = rng.choice([1, 2, 3, 3, 4, 5, 8])
        mesh, split = [ranks], {"SEQ": [0]}
        if ranks == 4 and rng.random() < 0.5:
            mesh, split = [2, 2], {"SEQ": [0], "BATCH": [1]}
        elif rng.random() < 0.15:
            split = {"BATCH": [0]}
        setting = Setting(mesh, split, view)
        near = rng.choice([3, 3, 9, 30])
        setting.window = rng.choice(
            [[rng.randint(0, near), rng.randint(0, near)]] * 5 +
            [[0, 0], [FAR, 0], [FAR, FAR], [0, FAR]])
        if view == "shard" and rng.random() < 0.15:
            setting.sum = "no"
        if list(split) == ["SEQ"] and rng.random() < 0.4:
            setting.here = rng.choice(["queries", "queries", "keys"])
        return setting

    def draw(self, rng, setting, op):
        if setting.here and setting.strategy == "heads":
            setting.strategy = "auto"
        for _ in range(100):
            q = rng.randint(1, 6)
            projected = rng.randint(0, 4)
            case = {
                "op": op, "mesh": setting.mesh, "split": setting.split,
                "part": {}, "window": setting.window,
                "strategy": setting.strategy, "n": rng.randint(1, 3),
                "beam": rng.choice([1, 1, 1, 2]), "heads": rng.randint(1, 3),
                "type": rng.choice(["float"] * 4 + ["double", "double",
                                                    "half", "bfloat16"]),
                "sizes": [q, rng.randint(1, 6), rng.randint(1, 6)],
                "projected": [projected, projected, rng.randint(0, 4),
                              rng.choice([0, q, rng.randint(1, 5)])],
                "biases": rng.randint(0, 1), "same": rng.randint(0, 1),
                "train": rng.choice([0, 1, 1, 1]), "adds": rng.randint(0, 1),
                "axes": [rng.randrange(len(AXES)) for _ in range(4)],
                "scale": rng.choice([0.5, 1, 0.25]), "open": rng.randint(0, 1),
                "ragged": 0, "drop": 0, "only": -1, "lengths": 0,
                "klengths": 0, "nan": 0, "twice": 0, "here": "", "by": "tag",
                "hole": -1, "repeat": rng.choice([1, 1, 2]),
                "seed": rng.randrange(1 << 30)}
            if setting.strategy == "heads":
                projected = max(projected, 1)
                case["projected"] = [projected, projected, rng.randint(1, 4),
                                     case["projected"][3]]
                case["beam"] = 1
                case["heads"] = setting.pieces("SEQ") * rng.randint(1, 2)
            if projected == 0:
                case["sizes"][1] = q
            case["n"] += setting.pieces("BATCH") - 1
            if projected and rng.random() < 0.3:
                case.update(twice=1, sizes=[q] * 3, beam=1,
                            axes=[case["axes"][0]] * 4)
                case["projected"][3] = q
            case["residual"] = int(vector_of(case) == q and rng.random() < 0.7)
            if case["same"]:
                case["sizes"][2] = case["sizes"][1]
                case["axes"][2] = case["axes"][1]
            case["seq"] = rng.randint(setting.pieces("SEQ"), 40)
            case["keys"] = case["seq"]
            if setting.view == "whole" and not case.get("twice") and \
                    rng.random() < 0.4:
                case["keys"] = rng.randint(1, 40)
                case["ragged"] = rng.choice([0, 1, 7])
            elif not case.get("twice") and min(case["window"]) == FAR and \
                    rng.random() < 0.5:
                case["keys"] = rng.randint(setting.pieces("SEQ"), 40)
            if setting.here:
                self.put_here(rng, setting, case)
            if rng.random() < 0.4:
                self.shorten(rng, case)
            if setting.sum != "yes":
                case["sum"], case["adds"] = setting.sum, 0
            for dim, whole in self.cuts(case):
                if dim in setting.split:
                    case["part"][dim] = cut(rng, setting, dim, whole)
            self.scatter(rng, setting, case)
            if self.valid(case, setting):
                return case
        return None

    def shorten(self, rng, case):
        """Makes sequences shorter than their padded length; those of keys are
        mostly as long as those of their queries."""
        def length(most):
            return rng.choice([most, rng.randint(1, most)])
        case["lengths"] = [length(case["seq"]) for _ in
                           range(case["n"] * case["beam"])]
        case["klengths"] = [
            max(case["lengths"][b * case["beam"]:(b + 1) * case["beam"]])
            for b in range(case["n"])]
        if case["keys"] != case["seq"] or (not case.get("twice") and
                                           rng.random() < 0.3):
            case["klengths"] = [length(case["keys"]) for _ in
                                range(case["n"])]
        case["nan"] = rng.randint(0, 1)

    def put_here(self, rng, setting, case):
        case.update(here=setting.here, twice=0,
                    seq=rng.randint(1, HERE), keys=rng.randint(HERE + 1, 40))
        if setting.view == "shard":
            case["ragged"] = 0

    def cuts(self, case):
        """Returns the dimensions that may be cut, with their extents."""
        return (("SEQ", case["keys" if case["here"] == "queries" else "seq"]),
                ("BATCH", case["n"]))

    def scatter(self, rng, setting, case):
        """Sometimes cuts operands in other places than the queries. If some
        have a tag, all get one: sundog takes an operand without a tag to be cut
        as the first operand that has one."""
        if setting.view != "shard" or setting.sum != "yes" or case["twice"] or \
                case["here"] or padded(case) or setting.ranks() == 1 or rng.random() > 0.4:
            return
        tensors = {t.name: t for t in self.tensors(case)}
        if rng.random() < 0.3:  # no tags: cut otherwise, or whole on every rank
            for name in [n for n in ("k", "v", "o", "do") if n in tensors and
                         setting.strategy != "heads" or n == "o"]:
                word = rng.choice(["", self.parts(rng, tensors[name]),
                                   "-" if name in ("o", "do") else ""])
                if word:
                    case["on." + name] = word
            return
        axes = sorted({a for axes in setting.split.values() for a in axes})
        draw = lambda name, dims: self.split(rng, setting, axes, tensors[name],
                                             dims)
        keys = draw("k", ("SEQ", "BATCH"))
        queries = rng.choice([words_of(tensors["q"].cut, setting.split)] * 5 +
                             [draw("q", ("SEQ", "BATCH"))] * 3 +
                             [draw("q", ("HEAD",)), "local"] * (keys != ""))
        if not queries:
            return
        if queries == "local" or "HEAD" in queries or "HEAD" in keys:
            case["strategy"] = "auto" if case["strategy"] == "heads" else \
                case["strategy"]
        else:
            keys = rng.choice([keys, draw("k", DIMS), "local"])
        cut = rng.choice([queries, "local"]) if "HEAD" not in queries else "local"
        words = {"q": queries, "k": keys,
                 "v": rng.choice([draw("v", DIMS) if "v" in tensors else "",
                                  keys]),
                 "o": rng.choice([draw("o", DIMS), cut]),
                 "do": rng.choice([draw("o", DIMS), cut])}
        if setting.strategy == "heads":
            words["k"] = words["v"] = words["q"] = words_of(
                tensors["q"].cut, setting.split)
            if case["keys"] != case["seq"]:
                return
        for name, word in words.items():
            if name in tensors:
                case["on." + name] = word or "local"

    def parts(self, rng, t):
        """Returns a word that cuts the same dimensions in other places."""
        cut = {}
        for dim, first in t.cut.items():
            size = first[-1]
            cut[dim] = [0] + sorted(rng.sample(range(1, size),
                                               len(first) - 2)) + [size]
        return words_of(cut, {})

    def split(self, rng, setting, axes, t, dims):
        """Returns a word that splits some of these dimensions over some of the
        axes, as a tag does; or ""."""
        split, cut = {}, {}
        for axis in axes:
            if rng.random() < 0.85:
                dim = rng.choice([d for d in dims if d != "BEAM"])
                split.setdefault(dim, []).append(axis)
        for dim in split:
            pieces, size = setting.pieces(dim, split), t.size[DIMS.index(dim)]
            if size < pieces:
                return ""
            cut[dim] = [0] + sorted(rng.sample(range(1, size), pieces - 1)) + \
                [size]
        return words_of(cut, split)

    def legal(self, case):
        for key, most, count in (("lengths", "seq", case["n"] * case["beam"]),
                                 ("klengths", "keys", case["n"])):
            found = lengths_of(case, key)
            if found and (len(found) != count or min(found) < 1 or
                          max(found) > case[most]):
                return False
        if case["twice"] and case["lengths"] != case["klengths"]:
            return False
        pq, pk = case["projected"][:2]
        return (pq or case["sizes"][0]) == (pk or case["sizes"][1]) and \
            (not case["residual"] or vector_of(case) == case["sizes"][0]) and \
            (not case["same"] or (case["sizes"][1] == case["sizes"][2] and
                                  case["axes"][1] == case["axes"][2])) and \
            (not case["twice"] or (
                set(case["sizes"]) == {vector_of(case)} and
                len(set(case["axes"])) == 1 and case["beam"] == 1 and
                case["keys"] == case["seq"])) and \
            min(case["sizes"] + [case[key] for key in
                                 ("seq", "keys", "n", "beam", "heads")]) > 0

    def valid(self, case, setting):
        if not self.legal(case) or set(case["split"]) - {"SEQ", "BATCH"}:
            return False
        if case["here"] and (list(case["split"]) != ["SEQ"] or
                             case["twice"] or
                             not case["seq"] <= HERE < case["keys"] or
                             case.get("strategy") == "heads" or
                             # Unclear which rank's terms a program
                             # would take.
                             case["here"] == "queries" and case["train"] and
                             case["beam"] > 1 and setting.sum != "yes"):
            return False
        if setting.view == "shard" and (case["ragged"] or (
                case["keys"] != case["seq"] and not case["here"] and (
                    min(case["window"]) < FAR or
                    case["keys"] < setting.pieces("SEQ")))):
            return False  # a window counts rows: cut queries and keys alike
        for dim, whole in self.cuts(case):
            first = case["part"].get(dim)
            if (first is None) != (dim not in case["split"]):
                return False
            if first and (len(first) != setting.pieces(dim) + 1 or
                          first[-1] != whole or sorted(first) != first):
                return False
            if first and setting.view == "shard" and \
                    min(b - a for a, b in zip(first, first[1:])) < 1:
                return False
        for t in self.placed(case) if self.scattered(case) else ():
            for dim, first in t.cut.items():
                if first[-1] != t.size[DIMS.index(dim)] or \
                        len(first) != setting.pieces(dim, t.axes) + 1:
                    return False
        if case.get("strategy") == "heads" and not by_heads(case, setting):
            return False
        if setting.view == "shard" and padded(case) and (
                blind(case) or case["here"] == "queries"):
            return False
        return case.get("sum", "yes") == "yes" or case["type"] in (
            "float", "double")

    def strategies(self, case, setting):
        return self.own_strategies if by_heads(case, setting) and \
            not case["here"] else \
            ("auto", "halo", "gather")

    def exact(self, case):
        return False

    def smaller(self, case):
        for key, value in self.plain.items():
            if key not in ("seed", "window", "sizes", "projected", "axes",
                           "here", "by") and \
                    case[key] != value:
                yield {**copy_of(case), key: value}
        for key in ("projected", "axes"):
            for i, value in enumerate(case[key]):
                if value:
                    new = copy_of(case)
                    new[key][i] = 0
                    yield new
        for dim, first in case["part"].items():
            for piece in range(1, len(first)):
                if first[piece] > first[piece - 1]:
                    new = copy_of(case)
                    new["part"][dim] = first[:piece] + [b - 1 for b in
                                                        first[piece:]]
                    if dim == "SEQ" and case["here"]:
                        new["keys" if case["here"] == "queries" else
                            "seq"] -= 1
                    elif dim == "SEQ":
                        new["keys"] -= int(case["keys"] == case["seq"])
                        new["seq"] -= 1
                    else:
                        new["n"] -= 1
                    yield new

    # ---- one call ---------------------------------------------------------

    def tensors(self, case):
        def sequence(name, which, **more):
            keys = which in (1, 2)
            like = {"dims": DIMS, "type": case["type"], "kind": "sequence",
                    "order": [DIMS[int(d)] for d in AXES[case["axes"][which]]],
                    "lengths": lengths_of(case, "klengths" if keys else
                                          "lengths")}
            size = [case["keys" if keys else "seq"], case["n"],
                    1 if keys else case["beam"],
                    [*case["sizes"], vector_of(case)][which]]
            part = dict(case["part"])
            if case["here"] == ("keys" if keys else "queries"):
                part.pop("SEQ")
                if name in ("q", "k") and case["by"] == "tag":
                    more["tag"] = "local"
            elif keys and "SEQ" in part and case["keys"] != case["seq"] and \
                    not case["here"]:
                pieces = len(part["SEQ"]) - 1
                part["SEQ"] = [case["keys"] * i // pieces
                               for i in range(pieces + 1)]
            return Tensor(name, size, cut=part, **{**like, **more})

        def parameters(name, **more):
            return Tensor(name, [max(1, count)], ("P",), case["type"],
                          "memory", **more)
        made = {"values": "nothing", "out": True}
        count = weights_of(case)["count"]
        found = [sequence("q", 0), sequence("k", 1)]
        found += [] if case["same"] else [sequence("v", 2)]
        found += [sequence("residual", 0)] if case["residual"] else []
        found += [parameters("w"), sequence("o", 3, **made)]
        found += [sequence("o2", 3, **made)] if case["twice"] else []
        if case["train"]:
            found += [sequence("do", 3), sequence("dq", 0, **made),
                      sequence("dk", 1, added=True, **made),
                      sequence("dv", 2, added=True, **made),
                      parameters("dw", values="uniform", out=True,
                                 summed=count > 0, added=True)]
        return found

    def placed(self, case):
        """Returns the operands; those with one descriptor get one placement."""
        beside = {"residual": "q", "dq": "q", "dk": "k",
                  "dv": "k" if case["same"] else "v"}
        tensors = self.tensors(case)
        for t in tensors:
            word = case.get("on." + beside.get(t.name, t.name))
            if word:
                t.place(word)
        return tensors

    def calls(self, case, local):
        words = {key: case[key] for key in ("heads", "biases", "train", "adds",
                                            "scale", "ragged", "open", "drop",
                                            "only")}
        words.update(zip(("pq", "pk", "pv", "po"), case["projected"]))
        if case["window"] != "none":
            words.update(zip(("left", "right"), case["window"]))
        if case["same"]:
            words["v"] = "k"
        if case["here"] or self.scattered(case):
            words["first"] = local.first["q"][0] - local.first["k"][0]
        if self.scattered(case):  # the extents that the call states
            words.update(zip(("limit", "qs", "ks", "vs"),
                             (case["keys"], *case["sizes"])))
        return [call("attention", {}, list(local), **words)]

    def derive(self, case, values):
        if case["hole"] >= 0:
            values["k"][case["hole"]] = np.nan
        for name, key in (("q", "lengths"), ("residual", "lengths"),
                          ("do", "lengths"), ("k", "klengths"),
                          ("v", "klengths")):
            if case["nan"] and name in values and lengths_of(case, key):
                values[name][~inside(case, key)] = np.nan

    # ---- float64 ----------------------------------------------------------

    def reference(self, case, t):
        return Definition(case, t).results()


def padded(case):
    return bool(case["lengths"] or case["klengths"])


def blind(case):
    """Returns whether some rank has queries of a sequence that can see only
    padding. The shard view refuses such calls."""
    queries, keys = inside(case, "lengths"), inside(case, "klengths")
    if case["here"] == "queries":
        return False
    first = case["part"].get("SEQ", [0, case["seq"]])
    left, right = case["window"]
    for s, e in zip(first, first[1:]):
        seen = keys[max(0, s - left):e + right].any(0)
        if (queries[s:e].any(0) & ~seen).any():
            return True
    return False


def by_heads(case, setting):
    """Returns whether the strategy `heads` is possible."""
    return setting.view == "whole" or (
        min(case["projected"][:3]) > 0 and case["beam"] == 1 and
        case["heads"] % setting.pieces("SEQ") == 0)


def lengths_of(case, key):
    """Returns the lengths as a list; None if all sequences are full."""
    found = case[key]
    return found if isinstance(found, list) else [found] if found else None


def inside(case, key):
    """Returns [time, batch, beam]: whether a query or key is not padding."""
    time, beams = (case["keys"], 1) if key == "klengths" else \
        (case["seq"], case["beam"])
    found = lengths_of(case, key) or [time] * (case["n"] * beams)
    return np.arange(time)[:, None, None] < np.reshape(found,
                                                       (case["n"], beams))


def vector_of(case):
    """Returns the number of elements of an output vector."""
    pv, po = case["projected"][2:]
    return po or case["heads"] * (pv or case["sizes"][2])


def cut(rng, setting, dim, total):
    pieces = setting.pieces(dim)
    if setting.view == "whole":
        if rng.random() < 0.2:
            at = rng.randrange(pieces)
            return [0] * (at + 1) + [total] * (pieces - at)
        return [0] + sorted(rng.randint(0, total)
                            for _ in range(pieces - 1)) + [total]
    if total < pieces:
        return None
    return [0] + sorted(rng.sample(range(1, total), pieces - 1)) + [total]


def weights_of(case):
    """Returns where matrices and biases are in the weights, in cuDNN's order:
    for q, k, v, o (0 to 3) the matrices as (offset, rows, columns), then (4 to
    7) the biases as (offset, columns); and the number of weights as "count"."""
    heads, at, out = case["heads"], 0, {}
    into = [case["projected"][0] or case["sizes"][0],
            case["projected"][1] or case["sizes"][1],
            case["projected"][2] or case["sizes"][2]]
    wide = heads * into[2]
    for i, size in enumerate(case["projected"]):
        if size:
            rows = case["sizes"][i] if i < 3 else wide
            columns = heads * size if i < 3 else size
            out[i] = (at, rows, columns)
            at += rows * columns
    for i, size in enumerate(case["projected"]):
        if size and case["biases"]:
            columns = heads * size if i < 3 else size
            out[4 + i] = (at, columns)
            at += columns
    out["count"] = at
    return out


class Pair:
    """Values, and the sums of the magnitudes of the terms in each."""

    def __init__(self, value, terms=None):
        self.value = value
        self.terms = abs(value) if terms is None else terms

    def __add__(self, other):
        return Pair(self.value + other.value, self.terms + other.terms)

    def __matmul__(self, other):
        return Pair(self.value @ other.value, self.terms @ other.terms)

    def of(self, function, *rest):
        """Applies a function that rearranges or adds elements."""
        return Pair(function(self.value, *rest), function(self.terms, *rest))


class Definition:
    def __init__(self, case, t, vectors=None):
        self.case, self.t = case, t
        self.queries, self.keys = inside(case, "lengths"), inside(case,
                                                                 "klengths")
        self.vectors = vectors or [Pair(self.trim(t[name], name != "q"))
                                   for name in
                                   ("q", "k", "k" if case["same"] else "v")]
        self.where = weights_of(case)
        self.heads = case["heads"]

    def trim(self, x, keys=False):
        """Returns x with zeros in place of padding."""
        return np.where((self.keys if keys else self.queries)[..., None], x, 0)

    def matrix(self, i):
        at, rows, columns = self.where[i]
        return Pair(self.t["w"][at:at + rows * columns].reshape(rows, columns))

    def project(self, x, i):
        """Returns what the heads see of x: (batch, beam, time, heads, size)."""
        x = x.of(np.moveaxis, 0, 2)
        if i not in self.where:
            return x.of(lambda a: np.repeat(a[..., None, :], self.heads, 3))
        y = x @ self.matrix(i)
        if 4 + i in self.where:
            at, columns = self.where[4 + i]
            y = y + Pair(np.broadcast_to(self.t["w"][at:at + columns],
                                         y.value.shape))
        return y.of(lambda a: a.reshape(*a.shape[:-1], self.heads, -1))

    def seen(self):
        """Returns [batch, 1, 1, query, key]: whether the query sees the key."""
        return self.window() & np.moveaxis(self.keys, 0, 2)[..., None, None, :]

    def window(self):
        case = self.case
        t, j = np.arange(case["seq"])[:, None], np.arange(case["keys"])
        if case["ragged"]:
            low = (t * 5 + case["ragged"]) % case["keys"]
            return (j >= low) & (j < low + 1 + (t * 3 + case["ragged"]) % 4)
        left, right = case["window"]
        return (j >= t - left) & (j <= t + right)

    def forward(self):
        case, t = self.case, self.t
        self.q, self.k, self.v = (
            self.project(x, i).of(lambda a: np.moveaxis(a, 3, 2))
            for i, x in enumerate(self.vectors))
        back = lambda a: np.swapaxes(a, -1, -2)
        scores = self.q @ self.k.of(back)
        mask = self.seen()
        s = np.where(mask, scores.value * case["scale"], -np.inf)
        most = s.max(-1, keepdims=True)
        weight = np.where(mask, np.exp(s - np.where(np.isfinite(most), most,
                                                    0)), 0)
        total = weight.sum(-1, keepdims=True)
        a = weight / np.where(total > 0, total, 1)
        worst = np.where(mask, scores.terms * abs(case["scale"]), 0).max(
            -1, keepdims=True)
        self.a = Pair(a, a * (1 + 2 * worst))
        self.context = (self.a @ self.v).of(
            lambda c: np.moveaxis(c, 2, 3).reshape(*c.shape[:2], c.shape[3],
                                                   -1))
        out = self.context
        if 3 in self.where:
            out = out @ self.matrix(3)
        if 7 in self.where:
            at, columns = self.where[7]
            out = out + Pair(np.broadcast_to(t["w"][at:at + columns],
                                             out.value.shape))
        out = out.of(np.moveaxis, 2, 0)
        if case["residual"]:
            out = out + Pair(t["residual"])
        return out.of(self.trim)

    def through(self, d, i):
        """Takes the gradient of what heads see, (batch, beam, heads, time,
        size). Returns the gradient of the vectors, and the gradient of the
        projected vectors (None without a projection)."""
        flat = d.of(lambda a: np.moveaxis(a, 2, 3))
        if i not in self.where:
            return flat.of(np.sum, 3), None
        flat = flat.of(lambda a: a.reshape(*a.shape[:3], -1))
        return flat @ self.matrix(i).of(np.transpose), flat

    def gradients(self):
        case, t = self.case, self.t
        back = lambda a: np.swapaxes(a, -1, -2)
        d_out = Pair(np.moveaxis(self.trim(t["do"]), 0, 2))
        d_context = d_out @ self.matrix(3).of(back) if 3 in self.where else \
            d_out
        d_heads = d_context.of(lambda c: np.moveaxis(
            c.reshape(*c.shape[:3], self.heads, -1), 3, 2))
        d_a = d_heads @ self.v.of(back)
        mean = (self.a.value * d_a.value).sum(-1, keepdims=True)
        d_s = Pair(case["scale"] * self.a.value * (d_a.value - mean),
                   abs(case["scale"]) * self.a.terms *
                   (d_a.terms + (self.a.terms * d_a.terms).sum(
                       -1, keepdims=True)))
        seen = [d_s @ self.k, d_s.of(back) @ self.q,
                self.a.of(back) @ d_heads]
        vectors = [pair.value for pair in self.vectors]
        found = {}
        dw = Pair(np.zeros(t["dw"].size))
        for i, d in enumerate(seen):
            x, flat = self.through(d, i)
            if i > 0:  # all beams see one sequence of keys
                x = x.of(lambda a: a.sum(1, keepdims=True))
            found["d" + SIZES[i]] = x.of(np.moveaxis, 2, 0)
            if flat is not None:
                self.add(dw, i, Pair(np.broadcast_to(
                    np.moveaxis(vectors[i], 0, 2),
                    (*flat.value.shape[:3], vectors[i].shape[-1]))), flat)
        if 3 in self.where:
            self.add(dw, 3, self.context, d_out)
        if case["adds"] or self.where["count"] == 0:
            dw = dw + Pair(t["dw"])
        found["dw"] = dw
        return found

    def add(self, dw, i, x, d):
        at, rows, columns = self.where[i]
        product = (x.of(lambda a: a.reshape(-1, a.shape[-1]).T) @
                   d.of(lambda a: a.reshape(-1, a.shape[-1]))).of(np.ravel)
        for total, part in ((dw.value, product.value),
                            (dw.terms, product.terms)):
            total[at:at + rows * columns] += part
        if 4 + i in self.where:
            at, columns = self.where[4 + i]
            for total, part in ((dw.value, d.value), (dw.terms, d.terms)):
                total[at:at + columns] += part.reshape(-1, columns).sum(0)

    def results(self):
        found = {"o": self.forward()}
        if self.case["twice"]:
            # The first output was rounded to its type.
            o = found["o"]
            o = Pair(o.value, o.terms + abs(o.value) * (
                eps(self.case["type"]) / math_eps(self.case["type"])))
            found["o2"] = Definition({**self.case, "residual": 0}, self.t,
                                     [o] * 3).forward()
        if self.case["train"]:
            found.update(self.gradients())
        return {name: (pair.value, pair.terms) for name, pair in found.items()}
