# SPDX-License-Identifier: Apache-2.0
"""A case is a dictionary, written as one line of key=value words. A setting is
what all cases of one start of the ranks share: mesh, split, view, strategy."""
import re

DIMS = {4: "NCHW", 5: "NCDHW"}
AXES = "abcd"
# If every rank has all queries or all keys: there are at most so many queries,
# and more keys than this, so that the rules can tell them apart.
HERE = 16
# The values of the rules' key `keep`.
# SUNDOG_COST: the device's own; extend costs nothing; extend costs most; all
# boxes but single runs are copied by a kernel.
COSTS = ["", "1e30,0,1", "1,0,0", "8e9,0.05,0.6,1e9"]
NARROW = 3
KEEPS = ["no", "dy", "x", "x dy"]
# Names of the dimensions of products in the rules.
PRODUCT = {"m": "M", "n": "N", "k": "K", "b": "BATCH"}


def word_of(value):
    if isinstance(value, list):
        return "x".join(map(str, value))
    return str(value)


def line_of(case):
    words = [f"op={case['op']}"]
    for key, value in case.items():
        if key == "mesh":
            words.append("mesh=" + word_of(value))
        elif key == "split":
            words.append("split=" + ",".join(
                f"{dim}:" + "+".join(map(str, axes))
                for dim, axes in value.items()))
        elif key in ("part", "ycut"):
            words += [f"{key}{dim}=" + ",".join(map(str, first))
                      for dim, first in value.items()]
        elif key != "op":
            words.append(f"{key}={word_of(value)}")
    return " ".join(words)


def case_of(line):
    case = {"mesh": [1], "split": {}, "part": {}}
    for word in line.split():
        key, value = word.split("=", 1)
        if key == "mesh":
            case[key] = [int(v) for v in value.split("x")]
        elif key == "split":
            for item in value.split(",") if value else []:
                dim, axes = item.split(":")
                case["split"][dim] = [int(a) for a in axes.split("+")]
        elif key[:4] in ("part", "ycut"):
            case.setdefault(key[:4], {})[key[4:]] = [int(v) for v in
                                                     value.split(",")]
        elif re.fullmatch(r"-?\d+(x-?\d+)+", value):
            case[key] = [int(v) for v in value.split("x")]
        elif re.fullmatch(r"-?\d+", value):
            case[key] = int(value)
        elif re.fullmatch(r"-?(\d*[.]?\d+(e-?\d+)?|inf)", value):
            case[key] = float(value)
        else:
            case[key] = value
    return case


def copy_of(case):
    return case_of(line_of(case))


class Setting:
    """What all cases of one start of the ranks share.
    mesh: extents of its axes.
    split: for each dimension its axes, slowest first.
    view: shard or whole. wrap: periodic dimensions.
    sum: the axes that gradients of parameters are summed over, "no" or "yes".
    bold: sundog may refuse the calls.
    window: (left, right) of attention.
    here: operands of attention that every rank has in full, "queries" or
    "keys"; in the shard view a tag says so, or a section that matches the size
    of their vectors (here_head).
    matrices: how a, b and c of a product are cut if the product's split does
    not decide it: "m:0" is dimension and axis.
    check: ranks compare every call.
    context: length of sequences in a [local] section.
    named: extents of tensors in a [local] section.
    pooling: "global" if the ranks' windows are parts of one window over all
    pieces.
    keep: what the rules promise about calls with the same fetched tensors, of
    KEEPS.
    cost: what strategy auto reckons with, of COSTS."""
    bold = False
    keep = 0
    cost = 0
    check = 0
    pooling = None
    context = 0
    named = None
    window = None
    here = None
    here_head = 0
    matrices = {}

    def __init__(self, mesh, split, view, strategy="auto", wrap="", sum="yes"):
        self.mesh, self.split, self.view = mesh, split, view
        self.strategy, self.wrap, self.sum = strategy, wrap, sum

    @classmethod
    def of(cls, case, view):
        setting = cls(case["mesh"], case["split"], view,
                      case.get("strategy", "auto"), case.get("wrap", ""),
                      case.get("sum", "yes"))
        setting.matrices = {key: case["at_" + key] for key in "abc"
                            if "at_" + key in case}
        setting.check = case.get("check", 0)
        setting.here = case.get("here")
        setting.context = case.get("context", 0)
        if case.get("by") == "section":
            setting.here_head = case["sizes"][int(setting.here == "keys")]
        setting.keep = case.get("keep", 0)
        setting.cost = case.get("cost", 0)
        setting.named = case.get("named")
        setting.pooling = case.get("pooling")
        if isinstance(case.get("window"), list):
            setting.window = case["window"]
        return setting

    def alone(self):
        """Returns the same setting for one rank."""
        return Setting([1] * len(self.mesh), self.split, self.view,
                       self.strategy, self.wrap, self.sum)

    def ranks(self):
        ranks = 1
        for extent in self.mesh:
            ranks *= extent
        return ranks

    def pieces(self, dim, split=None):
        pieces = 1
        for axis in (split or self.split).get(dim, ()):
            pieces *= self.mesh[axis]
        return pieces

    def place(self, rank):
        """Returns a rank's coordinates, row-major. Example: in mesh 2x3 rank 4
        is at 1, 1."""
        at = []
        for extent in reversed(self.mesh):
            at.insert(0, rank % extent)
            rank //= extent
        return at

    def pending(self, rank, cut):
        """Returns which addend a rank has, if the program must add them: its
        coordinates along the split axes that sundog does not sum over and that
        do not cut the sum itself."""
        summed = AXES if self.sum == "yes" else \
            "" if self.sum == "no" else self.sum
        split = {axis for dim, axes in self.split.items() if dim not in cut
                 for axis in axes}
        return tuple(at for axis, at in enumerate(self.place(rank))
                     if axis in split and AXES[axis] not in summed)

    def piece(self, rank, dim, split=None):
        """Returns the number of a rank's piece: its coordinates along the
        dimension's axes as one number. Example: in mesh 2x3, along axis 1,
        rank 4 has piece 1. split: replaces the setting's split."""
        at, piece = self.place(rank), 0
        for axis in (split or self.split)[dim]:
            piece = piece * self.mesh[axis] + at[axis]
        return piece

    def options(self, file):
        """Returns the arguments of `sundog run`. Writes a rules file if the
        command has no options for the setting."""
        mesh = [f"{AXES[i]}={n}" for i, n in enumerate(self.mesh)]
        split = ",".join(f"{dim}:" + "+".join(AXES[a] for a in axes)
                         for dim, axes in self.split.items())
        count = ["-n", str(self.ranks())]
        if set(self.split) & set(PRODUCT):
            self.write_product(file, mesh, split)
            return count + ["--rules", file]
        if not self.wrap and self.sum == "yes" and not self.window and \
                not self.keep and not self.named and not self.pooling:
            return count + ["--view", self.view, "--mesh", ",".join(mesh),
                            "--split", split]
        with open(file, "w") as rules:
            print("[mesh]", *mesh, file=rules, sep="\n")
            if self.here and (self.view == "whole" or self.here_head):
                print("[local here]", "match = " + (
                    f"HEAD={self.here_head}" if self.here_head else
                    f"SEQ<={HERE}" if self.here == "queries" else
                    f"SEQ>{HERE}"), file=rules, sep="\n")
            if self.context:
                print("[local context]", f"match = SEQ={self.context}",
                      file=rules, sep="\n")
            if self.named:
                print("[local named]", "match = " + " ".join(
                    f"{dim}={n}" for dim, n in zip(DIMS[len(self.named)],
                                                   self.named)),
                      file=rules, sep="\n")
            print("[shard all]", f"split = {split}",
                  f"view = {self.view}", f"strategy = {self.strategy}",
                  f"wrap = {' '.join(self.wrap)}" if self.wrap else "",
                  f"window = {self.window[0]},{self.window[1]}"
                  if self.window else f"window = {self.pooling}"
                  if self.pooling else "", f"keep = {KEEPS[self.keep]}",
                  f"sum = {'+'.join(self.sum)}" if self.sum not in
                  ("yes", "no") else f"sum = {self.sum}", sep="\n", file=rules)
        return count + ["--rules", file]


    def write_product(self, file, mesh, split):
        """Writes the rules for products of matrices. Cases write the dimensions
        of products in lower case, because N is a dimension of tensors, too."""
        def said(text):
            text = re.sub(r"[mnkb]\b", lambda m: PRODUCT[m[0]], text)
            return re.sub(r"\d", lambda m: AXES[int(m[0])], text)
        matrices = {key: text for key, text in self.matrices.items()
                    if key == "c"}
        sizes = []
        if self.view == "shard":
            matrices, sizes = self.product_says()
        with open(file, "w") as rules:
            print("[mesh]", *mesh, "[shard products]", "op = matmul",
                  "split = " + re.sub(r"[mnkb]:", lambda m: said(m[0]), split),
                  f"view = {self.view}",
                  *(f"{key} = {said(text)}" for key, text in matrices.items()),
                  *sizes, "sum = no" if self.sum == "no" and
                  self.view == "shard" else "",
                  f"keep = {KEEPS[self.keep]}", sep="\n", file=rules)

    def product_says(self):
        """Returns how all matrices are cut, and lines that say what the sizes
        of calls mean in the shard view: a piece of a dimension that the
        product's split cuts, the whole of one that only a matrix is cut in."""
        def own(dims):
            return ",".join(f"{d}:" + "+".join(map(str, self.split[d]))
                            for d in dims if d in self.split) or "replicated"
        matrices = {"a": own("mkb"), "b": own("knb"), **self.matrices}
        others = {d for text in matrices.values()
                  for d in re.findall(r"([mnkb]):", text)} - set(self.split)
        sizes = [f"{PRODUCT[d]}:piece" for d in self.split] + \
                [f"{PRODUCT[d]}:whole" for d in others]
        parts = [f"{PRODUCT[d]}:even" for d in others]
        return matrices, ["sizes = " + " ".join(sizes)] + (
            ["parts = " + " ".join(parts)] if parts else [])


def draw_mesh(rng, dims):
    """Returns a mesh of 1 to 8 ranks, and a split of some of these
    dimensions."""
    ranks = rng.choice([1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8])
    mesh, left = [], ranks
    while left > 1 and len(mesh) < 2 and rng.random() < 0.5:
        divisors = [d for d in range(2, left + 1) if left % d == 0]
        mesh.append(rng.choice(divisors))
        left //= mesh[-1]
    if left > 1 or not mesh:
        mesh.append(left)
    dims = list(dims) + (["N"] if rng.random() < 0.25 else [])
    rng.shuffle(dims)
    split = {}
    for axis in range(len(mesh)):
        if split and rng.random() < 0.1:
            continue  # ranks along this axis repeat the work
        split.setdefault(dims[axis % len(dims)], []).append(axis)
    return mesh, split


def draw_parts(rng, setting, dim, total):
    """Returns where a dimension is cut; None if it is too small."""
    pieces = setting.pieces(dim)
    if total < 1:
        return None
    if setting.view != "shard":
        return [0] + sorted(rng.randint(0, total)
                            for _ in range(pieces - 1)) + [total]
    if total < pieces:
        return None
    if rng.random() < 0.5:
        return [0] + sorted(rng.sample(range(1, total), pieces - 1)) + [total]
    return [total * i // pieces for i in range(pieces + 1)]
