# SPDX-License-Identifier: Apache-2.0
"""Attention as an operation graph: the products, pointwise ops and reductions
that cudnn-frontend states it by, its gradient, and the one operation without a
mask. The reference follows the definition."""
import numpy as np

from cases import Setting, copy_of
from families.family import Family, call
from tensors import Tensor, eps, math_eps

DIMS = ("BATCH", "HEADS", "SEQ", "HEAD")
LAYOUTS = {"bhsd": DIMS, "bshd": ("BATCH", "SEQ", "HEADS", "HEAD"),
           "sbhd": ("SEQ", "BATCH", "HEADS", "HEAD")}
SPLITS = ({"SEQ": [0]}, {"HEADS": [0]}, {"BATCH": [0]})
PAIRS = ({"BATCH": [0], "SEQ": [1]}, {"HEADS": [0], "SEQ": [1]},
         {"SEQ": [0, 1]}, {"SEQ": [1], "BATCH": [0]})


class AttentionGraph(Family):
    """Words of a case:
    n, heads, seq, keys, sizes: extents; sizes of a query's and a value's
    vector. groups: heads of keys and values, which divide heads.
    right, left: query i sees key j if i + right >= j and j + left > i; right
    -1, left 0: no such bound. bottom: the last query and the last key meet in
    place of the first ones.
    scale: by value; 0: the queries contain it.
    lengths, klengths: of each batch's queries and keys; 0: all are full.
    bias: 0: none; else its batches and heads are 1 or all (bits 1 and 2).
    layout: of memory; "mixed": each tensor has another one. gap: unused elements
    behind each vector. ops: the order of operations (op_case's `ops`).
    direct: the gradient of queries has no sum in float.
    at: O is written over Q, in the same memory. same: keys are the values.
    swings: before each execution there is one with another scale.
    part cuts SEQ of queries, BATCH, and HEADS: of keys, or, if all ranks have
    the one head of keys (here=head), of queries. ycut cuts SEQ of keys.
    here: "keys" or "queries": every rank has all of them, and says so by a
    tag."""
    ops = sharded = ("attention_graph_forward", "attention_graph_backward",
                     "attention_graph_one")
    splits = DIMS
    own_strategies = ("auto", "halo", "gather", "heads", "ring")
    plain = {"type": "half", "n": 1, "heads": 1, "groups": 1, "sizes": [8, 8],
             "right": -1, "left": 0, "bottom": 0, "scale": 0.25, "stats": 1,
             "lengths": 0, "klengths": 0, "bias": 0, "layout": "bshd",
             "gap": 0, "ops": "new", "direct": 0, "at": 0, "same": 0, "swings": 0, "here": "", "repeat": 1, "seed": 1}

    def complete(self, case):
        case = {**self.plain, **case}
        case.setdefault("seq", case["part"].get("SEQ", [0, 12])[-1])
        case.setdefault("keys", case["seq"])
        if "SEQ" in case["part"] and "ycut" not in case:
            case["ycut"] = {"SEQ": list(case["part"]["SEQ"])}
        return case

    def setting(self, rng, view):
        ranks = rng.choice([1, 2, 3, 3, 4, 4, 5, 6, 8])
        if ranks in (4, 6, 8) and rng.random() < 0.5:
            return Setting([2, ranks // 2], rng.choice(PAIRS), view)
        return Setting([ranks], rng.choice(SPLITS[:1] * 3 + SPLITS), view)

    def draw(self, rng, setting, op):
        for _ in range(300):
            case = self.random(rng, setting, op)
            if self.valid(case, setting) and setting.strategy in \
                    self.strategies(case, setting):
                return case
        return None

    def random(self, rng, setting, op):
        pieces = setting.pieces
        groups = rng.choice([1, rng.randint(1, 3) + pieces("HEADS") - 1])
        heads = groups * rng.choice([1, 1, 2, 3])
        if groups == 1 and pieces("HEADS") > 1:
            groups = heads = rng.randint(pieces("HEADS"), 9)
        size = 8 * rng.randint(1, 4)
        least, most = pieces("SEQ"), 40 + pieces("SEQ")
        seq = rng.randint(least, rng.choice([least + 2, most]))
        case = {
            "op": op, "mesh": setting.mesh, "split": setting.split, "part": {},
            "strategy": setting.strategy, "heads": heads, "groups": groups,
            "n": rng.randint(1, 3) + pieces("BATCH") - 1, "seq": seq,
            "keys": seq if rng.random() < 0.6 else rng.randint(least, most),
            "sizes": [size, rng.choice([size, size, 8 * rng.randint(1, 4)])],
            "type": rng.choice(["half", "bfloat16", "float"]),
            "scale": rng.choice([0, 0.25, 0.125, 0.5]),
            "stats": int(op[-1] == "d" or rng.random() < 0.5),
            "right": -1, "left": 0, "bottom": 0, "lengths": 0, "klengths": 0,
            "bias": rng.choice([0, 0, 0, rng.randint(1, 4)]),
            "layout": rng.choice([*LAYOUTS, "mixed"]),
            "gap": rng.choice([0, 0, 0, 8]),
            "ops": rng.choice(["new", "old", "shuffled"]),
            "direct": int(rng.random() < 0.2), "here": "",
            "at": int(op[-1] != "d" and rng.random() < 0.2),
            "same": int(rng.random() < 0.1),
            "swings": int(rng.random() < 0.2),
            "repeat": rng.choice([1, 1, 2]), "seed": rng.randrange(1 << 30)}
        if setting.view == "shard" and len(setting.split) == 1 and \
                rng.random() < 0.2:
            self.put_here(rng, setting, case)
        if op != "attention_graph_one":
            self.mask(rng, case)
        else:
            case.update(ops="new", bias=0)
        if rng.random() < 0.25:
            self.shorten(rng, case)
        if setting.view == "shard" and "SEQ" in setting.split:
            case.update(bias=0, lengths=0, klengths=0)
        for dim in setting.split:
            case["part"][dim] = cut(rng, setting, dim, self.whole(case, dim))
        if "SEQ" in setting.split:
            alike = case["keys"] == seq and rng.random() < 0.7
            case["ycut"] = {"SEQ": case["part"]["SEQ"] if alike else
                            cut(rng, setting, "SEQ", case["keys"])}
        return case

    def put_here(self, rng, setting, case):
        if "HEADS" in setting.split:
            case.update(here="head", groups=1,
                        heads=rng.randint(setting.pieces("HEADS"), 9))
        elif "SEQ" in setting.split:
            case["here"] = rng.choice(["keys", "keys", "queries"])

    def mask(self, rng, case):
        kind = rng.choice(["none", "causal", "bottom", "right", "left", "band",
                           "band bottom"])
        far = rng.choice([2, 8, 30])
        if case["ops"] == "old":  # its right bound is 0
            kind = {"right": "causal", "band": "left",
                    "band bottom": "bottom"}.get(kind, kind)
        if kind != "none":
            case["right"] = 0
        if kind in ("right", "band", "band bottom"):
            case["right"] = rng.randint(0, far)
        if kind in ("left", "band", "band bottom"):
            case["left"] = rng.randint(1, far)
        case["bottom"] = int("bottom" in kind)
        if (case["bottom"] or case["left"]) and case["seq"] > case["keys"]:
            case["seq"], case["keys"] = case["keys"], case["seq"]

    def shorten(self, rng, case):
        """The first batch has its full length. Every query sees a key."""
        queries, keys = [case["seq"]], [case["keys"]]
        for _ in range(case["n"] - 1):
            keys.append(rng.randint(1, case["keys"]))
            bound = keys[-1] if case["bottom"] or case["left"] else case["seq"]
            queries.append(rng.randint(1, min(bound, case["seq"])))
        case.update(lengths=queries, klengths=keys)
        case["stats"] *= int(case["op"] == "attention_graph_backward")

    def whole(self, case, dim):
        return {"SEQ": case["seq"], "BATCH": case["n"], "HEADS": case[
            "heads" if case["here"] == "head" else "groups"]}[dim]

    def legal(self, case):
        for key, most in (("lengths", "seq"), ("klengths", "keys")):
            found = lengths_of(case, key)
            if found and (len(found) != case["n"] or min(found) < 1 or
                          max(found) > case[most]):
                return False
        if min(case["n"], case["seq"], case["keys"], case["groups"]) < 1 or \
                case["heads"] % case["groups"] or min(case["sizes"]) % 8:
            return False
        if case["stats"] and lengths_of(case, "lengths") and \
                case["op"] != "attention_graph_backward":
            return False  # those of padding are anything
        if case["at"] and (case["sizes"][0] != case["sizes"][1] or
                           case["op"] == "attention_graph_backward"):
            return False
        if case["same"] and case["sizes"][0] != case["sizes"][1]:
            return False
        if case["swings"] and (case["at"] or not case["scale"]):
            return False
        # A row that sees nothing is no number.
        return mask_of(case).any(-1)[rows_of(case)].all()

    def valid(self, case, setting):
        if not self.legal(case) or set(case["split"]) - set(DIMS[:3]):
            return False
        shard = setting.view == "shard"
        wholes = [(case["part"].get(dim), self.whole(case, dim), dim)
                  for dim in case["split"]]
        if "SEQ" in case["split"]:
            wholes.append((case["ycut"]["SEQ"], case["keys"], "SEQ"))
        for first, whole, dim in wholes:
            if first is None or len(first) != setting.pieces(dim) + 1 or \
                    first[-1] != whole or sorted(first) != first:
                return False
            if shard and min(b - a for a, b in zip(first, first[1:])) < 1:
                return False
        if not shard or setting.ranks() == 1:
            return True
        return not self.unclear(case, setting)

    def unclear(self, case, setting):
        """Returns whether sundog asks what the program means: one query or one
        head of keys on every rank; a left bound alone where queries and keys
        are cut in different places."""
        single = lambda first: len(first) > 2 and first[-1] == len(first) - 1
        cut = case["part"].get("SEQ", [0, 2])
        keys = case.get("ycut", {}).get("SEQ", cut)
        return single(cut) or single(keys) or \
            single(case["part"].get("HEADS", [0, 2])) and \
            case["here"] != "head" or case["left"] > 0 and case["right"] < 0 and keys != cut

    def strategies(self, case, setting):
        if case["here"]:
            return ("auto",)
        # Heads that are in pieces already cannot be dealt out (SDG-630).
        return [s for s in self.own_strategies
                if s != "heads" or setting.pieces("HEADS") == 1]

    def exact(self, case):
        return False

    def smaller(self, case):
        for key, value in self.plain.items():
            if key not in ("seed", "sizes", "groups", "here") and case[key] != value:
                yield {**copy_of(case), key: value}
        if case["heads"] > case["groups"] and case["here"] != "head":
            yield {**copy_of(case), "heads": case["groups"]}
        if case["sizes"] != [8, 8]:
            yield {**copy_of(case), "sizes": [8, 8]}
        for word, cuts in (("part", case["part"]),
                           ("ycut", case.get("ycut", {}))):
            for dim, first in cuts.items():
                for piece in range(1, len(first)):
                    if first[piece] > first[piece - 1]:
                        yield shortened(case, word, dim, piece)

    def named(self):
        return named_cases()

    def refused(self, item):
        return refused_cases(item)

    # ---- one call ---------------------------------------------------------

    def tensors(self, case):
        # order: of statistics, which have no gaps.
        def array(name, heads, keys, size, type=None, order=None, **more):
            part = dict(case["part"])
            if keys and "ycut" in case:
                part["SEQ"] = case["ycut"]["SEQ"]
            if "HEADS" in part and case["here"] != "head":
                of = heads // case["groups"]
                part["HEADS"] = [of * at for at in part["HEADS"]]
            whole = {"head": "HEADS" if keys else "", "keys": "SEQ" * keys,
                     "queries": "SEQ" * (1 - keys), "": ""}[case["here"]]
            if part.pop(whole, None) and "at" not in more:
                more.update(tag="local", graph=True)
            layout = case["layout"] if case["layout"] != "mixed" else \
                list(LAYOUTS)[sum(map(ord, name)) % len(LAYOUTS)]
            if case["gap"] and not order:
                more["gaps"] = {"HEAD": case["gap"]}
            return Tensor(name, [case["n"], heads,
                                 case["keys" if keys else "seq"], size], DIMS,
                          type or case["type"], cut=part,
                          order=order or LAYOUTS[layout], **more)

        made = {"values": "nothing", "out": True}
        heads, groups, (d, d_v) = case["heads"], case["groups"], case["sizes"]
        back = case["op"] == "attention_graph_backward"
        if case["at"]:
            found = [array("o", heads, 0, d, values=(-2, 2), out=True),
                     array("o", heads, 0, d, at="o")]
            found[1].name = "q"
        else:
            found = [array("q", heads, 0, d, values=(-2, 2)),
                     array("o", heads, 0, d_v, **({} if back else made))]
        found += [array("k", groups, 1, d, values=(-2, 2))]
        if case["same"]:
            found.append(array("k", groups, 1, d, at="k"))
            found[-1].name = "v"
        else:
            found.append(array("v", groups, 1, d_v))
        if case["stats"] or back:
            found.append(array("stats", heads, 0, 1, "float", DIMS,
                               **({} if back else made)))
        if case["bias"]:
            found.append(self.bias(case))
        for name, key in (("lengths", "lengths"), ("klengths", "klengths")):
            if lengths_of(case, key):
                cut = {dim: first for dim, first in case["part"].items()
                       if dim == "BATCH"}
                found.append(Tensor(name, [case["n"], 1, 1, 1], DIMS, "int32",
                                    cut=cut, values=np.reshape(
                                        lengths_of(case, key), (-1, 1, 1, 1))))
        if back:
            found += [array("do", heads, 0, d_v),
                      array("dq", heads, 0, d, **made),
                      array("dk", groups, 1, d, **made),
                      array("dv", groups, 1, d_v, **made)]
        return found

    def bias(self, case):
        of = 1 if case["here"] == "head" else case["heads"] // case["groups"]
        size = [case["n"] if case["bias"] & 1 else 1,
                case["heads"] if case["bias"] & 2 else 1, case["seq"],
                case["keys"]]
        cut = {}
        for dim, first in case["part"].items():
            if dim == "SEQ" or size[DIMS.index(dim)] > 1:
                cut[dim] = [at * of for at in first] if dim == "HEADS" else first
        return Tensor("bias", size, DIMS, case["type"], cut=cut,
                      values=(-2, 2))

    def calls(self, case, local):
        return [call(case["op"], case, local, "ops", "seed", "right", "left",
                     "bottom", "scale", "direct", "swings")]

    def derive(self, case, values):
        if case["op"] == "attention_graph_backward":
            o, stats = forward(case, values)
            values["o"], values["stats"] = o[0], stats[0]

    # ---- float64 ----------------------------------------------------------

    def reference(self, case, t):
        if case["op"] == "attention_graph_backward":
            return backward(case, t)
        o, stats = forward(case, t)
        return {"o": o, "stats": stats}


def cut(rng, setting, dim, total):
    pieces = setting.pieces(dim)
    if setting.view == "whole":
        return [0] + sorted(rng.randint(0, total)
                            for _ in range(pieces - 1)) + [total]
    if total < pieces:
        return None
    return [0] + sorted(rng.sample(range(1, total), pieces - 1)) + [total]


def shortened(case, word, dim, piece):
    """Returns the case with one element less in a piece."""
    new = copy_of(case)
    less = lambda first: first[:piece] + [at - 1 for at in first[piece:]]
    key = {"part": {"SEQ": "seq", "BATCH": "n", "HEADS": "groups"},
           "ycut": {"SEQ": "keys"}}[word][dim]
    new[word][dim] = less(new[word][dim])
    new[key] -= 1
    if case["here"] == "head":
        new["groups"], new["heads"] = 1, case["heads"] - 1
    elif key == "groups":
        new["heads"] = new["groups"] * (case["heads"] // case["groups"])
    if word == "part" and dim == "SEQ" and case["ycut"]["SEQ"] == \
            case["part"]["SEQ"]:
        new["ycut"]["SEQ"] = less(new["ycut"]["SEQ"])
        new["keys"] -= 1
    return new


def lengths_of(case, key):
    """Returns the lengths as a list; None if all sequences are full."""
    found = case[key]
    return found if isinstance(found, list) else [found] if found else None


def rows_of(case):
    """Returns [batch, 1, query]: whether the query is not padding."""
    lengths = lengths_of(case, "lengths") or [case["seq"]] * case["n"]
    return np.arange(case["seq"]) < np.reshape(lengths, (-1, 1, 1))


def mask_of(case):
    """Returns [batch, 1, query, key]: whether the query sees the key."""
    queries = np.reshape(lengths_of(case, "lengths") or
                         [case["seq"]] * case["n"], (-1, 1, 1, 1))
    keys = np.reshape(lengths_of(case, "klengths") or
                      [case["keys"]] * case["n"], (-1, 1, 1, 1))
    i, j = np.arange(case["seq"])[:, None], np.arange(case["keys"])
    row = i + case["bottom"] * (keys - queries)
    seen = (i < queries) & (j < keys)
    if case["right"] >= 0:
        seen = seen & (row + case["right"] >= j)
    if case["left"] > 0:
        seen = seen & (j + case["left"] > row)
    return seen


def over(case):
    """Returns how many roundings of float one of the case's type is, so that
    64 of them are 16 of the type."""
    return eps(case["type"]) / math_eps("float") / 4


def near_zero(case):
    """Returns the same of the least number of half: weights and slopes are
    rounded to multiples of it."""
    return 2.0 ** -24 / math_eps("float") / 16 * (case["type"] == "half")


def back(a):
    return np.swapaxes(a, -1, -2)


def repeated(case, a):
    """Returns keys or values for all heads."""
    return np.repeat(a, case["heads"] // case["groups"], 1)


def scores(case, t):
    """Returns the scores, with -inf for what is not seen, and the magnitudes
    of their terms."""
    scale = case["scale"] or 1
    q, k = t["q"], repeated(case, t["k"])
    s, terms = scale * (q @ back(k)), scale * (abs(q) @ back(abs(k)))
    if case["bias"]:
        s, terms = s + t["bias"], terms + abs(t["bias"])
    seen = np.broadcast_to(mask_of(case), s.shape)
    return np.where(seen, s, -np.inf), np.where(seen, terms, 0)


def forward(case, t):
    """Returns O and the statistics with the magnitudes of their terms. Padded
    rows are 0."""
    s, terms = scores(case, t)
    rows = np.broadcast_to(rows_of(case)[..., None], (*s.shape[:3], 1))
    most = np.where(rows, s.max(-1, keepdims=True), 0)
    p = np.exp(s - most)
    total = np.where(rows, p.sum(-1, keepdims=True), 1)
    p = p / total
    worst = terms.max(-1, keepdims=True)
    p_terms = p * (1 + over(case) + 2 * worst) + near_zero(case) * (p > 0)
    v = repeated(case, t["v"])
    stats = most + np.log(total)
    near = abs(most) + abs(np.log(total)) + worst + 4
    return (p @ v, p_terms @ abs(v)), (stats, near)


def backward(case, t):
    s, terms = scores(case, t)
    scale = case["scale"] or 1
    grouped = lambda a: a.reshape(case["n"], case["groups"], -1,
                                  *a.shape[2:]).sum(2)
    p = np.where(np.isfinite(s), np.exp(s - t["stats"]), 0)
    p_terms = p * (1 + over(case) + 2 * (terms + abs(t["stats"]))) + \
        near_zero(case) * (p > 0)
    v, k, q, d_o = repeated(case, t["v"]), repeated(case, t["k"]), t["q"], \
        t["do"]
    delta = (d_o * t["o"]).sum(-1, keepdims=True)
    delta_terms = abs(d_o * t["o"]).sum(-1, keepdims=True)
    slope = p * (d_o @ back(v) - delta)
    slope_terms = p_terms * (abs(d_o) @ back(abs(v)) + delta_terms) + \
        near_zero(case) * (p > 0)
    dk = (scale * (back(slope) @ q), scale * (back(slope_terms) @ abs(q)))
    dv = (back(p) @ d_o, back(p_terms) @ abs(d_o))
    return {"dq": (scale * (slope @ k), scale * (slope_terms @ abs(k))),
            "dk": (grouped(dk[0]), grouped(dk[1])),
            "dv": (grouped(dv[0]), grouped(dv[1]))}


def named_cases():
    ring = "mesh=4 split=SEQ:0 partSEQ=0,7,8,20,31 "
    cases = []
    for n, words in (
            ("causal, by a ring", ring + "right=0 strategy=ring"),
            ("a band, by halos", ring + "right=2 left=3 strategy=halo"),
            ("grouped heads, gathered", ring + "heads=6 groups=2 "
             "strategy=gather"),
            ("from the bottom, other keys", ring + "right=0 bottom=1 keys=40 "
             "ycutSEQ=0,1,18,30,40 strategy=ring"),
            ("by heads that do not divide the ranks", ring + "heads=3 groups=3 "
             "right=0 strategy=heads"),
            ("one row on most ranks", "mesh=8 split=SEQ:0 "
             "partSEQ=0,1,2,3,4,5,6,7,11 right=0 strategy=ring"),
            ("keys on every rank", ring + "right=0 here=keys"),
            ("queries on every rank", ring + "right=0 here=queries"),
            ("one head of keys on every rank", "mesh=3 split=HEADS:0 "
             "partHEADS=0,1,2,5 heads=5 groups=1 here=head right=0"),
            ("lengths in batches", "mesh=2 split=BATCH:0 partBATCH=0,1,3 n=3 "
             "right=0 lengths=12x3x5 klengths=12x7x9"),
            ("heads and sequences", "mesh=2x2 split=HEADS:0,SEQ:1 "
             "partHEADS=0,1,3 partSEQ=0,11,13 heads=6 groups=3 right=0 left=4 "
             "strategy=ring")):
        for op in ("forward", "backward"):
            more = " stats=0" * (op == "forward" and "lengths" in words)
            cases.append((f"attention graph, {n}, {op}",
                          f"op=attention_graph_{op} n=2 {words}{more}"))
    return cases


def refused_cases(item):
    for op in ("forward", "backward"):
        line = (f"op=attention_graph_{op} mesh=2 split=SEQ:0 partSEQ=0,5,12 "
                "right=0 scale=0.5 seed=1")
        for name, other, times in (
                ("another scale", line.replace("scale=0.5", "scale=0.25"), 1),
                ("another scale from the second run on", line + " swings=3",
                 2),
                ("no bound", line.replace("right=0", "right=-1"), 1)):
            mine = line + " swings=1" * ("swings" in other)
            yield item(f"attention graph {op}, rank 1 has {name}",
                       [[mine], [other]], [r"SDG-\d\d\d.*rank"], line=mine,
                       times=times, view="shard")
    # Everything that a rank may have one of, or that all have in common.
    for name, words, says in (
            ("one query on every rank", "partSEQ=0,1,2 keys=12 ycutSEQ=0,5,12",
             ["SDG-405", "one query"]),
            ("a bound before queries alone, other parts of keys",
             "partSEQ=0,5,12 ycutSEQ=0,6,12 right=-1 left=3",
             ["SDG-630", "top left or from the bottom right"])):
        line = (f"op=attention_graph_forward mesh=2 split=SEQ:0 {words} seed=1")
        yield item(f"attention graph, {name}", [[line]] * 2, says, line=line,
                   view="shard")
