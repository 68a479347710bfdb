# SPDX-License-Identifier: Apache-2.0
"""Multi-head attention, forward and with its gradients: random cases."""
import numpy as np

from cases import HERE, Setting, copy_of
from families.attention_definition import (Definition, inside, lengths_of,
                                           vector_of, weights_of)
from families.family import Family, call, words_of
from tensors import Tensor

DIMS = ("SEQ", "BATCH", "BEAM", "HEAD")
AXES = ("0123", "1023", "2103", "0213", "1203", "2013")
FAR = 1 << 20  # the window has no bound on this side


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
