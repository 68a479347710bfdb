# SPDX-License-Identifier: Apache-2.0
"""Draws functions and kernels: arguments, tensors, reach, borders, grids; writes
their sections of the rules."""

DIMS = "NCDHW"
INTEGERS = {
    "int": "int", "unsigned": "unsigned", "long": "long",
    "unsigned long": "unsigned long", "long long": "long long",
    "unsigned long long": "unsigned long long", "short": "short",
    "unsigned short": "unsigned short", "char": "char",
    "signed char": "signed char", "unsigned char": "unsigned char",
    "size_t": "size_t", "ptrdiff_t": "ptrdiff_t", "int8_t": "int8_t",
    "uint8_t": "uint8_t", "int16_t": "int16_t", "uint16_t": "uint16_t",
    "int32_t": "int32_t", "uint32_t": "uint32_t", "int64_t": "int64_t",
    "uint64_t": "uint64_t", "unsigned int": "unsigned int"}
NUMBERS = {**INTEGERS, "bool": "bool", "float": "float", "double": "double"}
ELEMENTS = {  # type of C, kind, bytes
    "float": ("float", "f", 4), "double": ("double", "f", 8),
    "half": ("uint16_t", "h", 2), "bfloat16": ("uint16_t", "h", 2),
    "int": ("int", "i", 4), "unsigned": ("unsigned", "u", 4),
    "long": ("long", "i", 8), "size_t": ("size_t", "u", 8),
    "short": ("short", "i", 2), "uint16_t": ("uint16_t", "u", 2),
    "char": ("char", "i", 1), "uint8_t": ("uint8_t", "u", 1),
    "bool": ("bool", "b", 1), "int64_t": ("int64_t", "i", 8)}
FORTRAN = {"int": "integer(4)", "long": "integer(8)", "int8_t": "integer(1)",
           "int16_t": "integer(2)", "int32_t": "integer(4)",
           "int64_t": "integer(8)", "float": "real(4)", "double": "real(8)"}
RESULTS = ["float", "double", "int", "long"]
RETURNS = ["void", "int", "long", "double", "float", "unsigned char", "short",
           "bool", "const char *"]
MOST_EXTENT = 100  # in any type of integers
# Of kernels in C++, whose symbols tell the types.
CXX_ELEMENTS = [name for name in ELEMENTS if name not in ("half", "bfloat16")]


class Function:
    def __init__(self, index, rng):
        self.index, self.rng = index, rng
        self.name = f"fn_{index}"
        self.is_kernel = rng.random() < 0.4
        self.language = rng.choice(["c", "c++"] if self.is_kernel else
                                   ["c"] * 4 + ["fortran", "c++"])
        self.dims = self.draw_dims()
        self.split = rng.choice([d for d in self.dims])
        self.arguments = []  # (name, class, type, by reference, ...)
        self.ghosted = rng.random() < 0.3
        self.pure = rng.random() < 0.4
        self.draw_sizes()
        self.draw_reach()
        self.draw_tensors()
        self.draw_others()
        if self.is_kernel:
            self.draw_grid()
        rng.shuffle(self.arguments)

    def draw_dims(self):
        count = self.rng.choice([1, 2, 2, 2, 3, 3, 4, 5])
        return self.rng.sample(DIMS, count)

    def integer_type(self):
        return self.rng.choice([w for w in INTEGERS if
                                self.language != "fortran" or w in FORTRAN])

    def by_reference(self):
        return self.language == "fortran" or (not self.is_kernel and
                                              self.rng.random() < 0.2)

    def add(self, name, what, type="", reference=False, **more):
        self.arguments.append({"name": name, "class": what, "type": type,
                               "reference": reference, **more})

    def draw_sizes(self):
        """An argument for each extent, and the extent as an expression of
        it; value: the argument as an expression of the extents E."""
        self.extent = {}
        for d in self.dims:
            name = {"N": "batch", "C": "channels", "D": "planes", "H": "rows",
                    "W": "columns"}[d]
            e = f"E[{DIMS.index(d)}]"
            form, value = self.rng.choice(
                [(name, e)] * 5 + [(f"(2 * {name} - {name})", e),
                                   (f"{name} * 3 / 3", e),
                                   (f"(0 + {name} * (7 - 6))", e)])
            self.extent[d] = form if len(self.dims) < 4 and \
                not self.ghosted else name
            self.add(name, "size", self.integer_type(), self.by_reference(),
                     value=value)

    def draw_reach(self):
        wide = 0
        self.reach, self.border = {}, {}
        for d in self.dims:
            reach = self.rng.choice([0, 0, 1, 1, 2, 3, "all"])
            if reach not in (0, "all"):
                wide += 1
                reach = reach if wide < 3 else 0
            if self.ghosted and reach == "all":
                reach = 1
            self.reach[d] = reach
            self.border[d] = self.rng.choice(["own", "own", "wrap", "zero"])
        self.ghost, self.sees = {}, {}
        for d in self.dims:
            reach = self.reach[d] if self.reach[d] != "all" else 0
            before, behind = self.sees[d] = self.rng.choice(
                [(reach, reach)] * 3 + [(0, reach), (reach, 0)])
            if self.ghosted:
                more = self.rng.choice([0, 0, 1])
                self.ghost[d] = self.rng.choice(
                    [(reach + more,) * 2, (before, behind + more)])

    def draw_tensors(self):
        self.tensors = []
        count = self.rng.choice([1, 1, 2, 2, 3, 4])
        self.stream = self.rng.choice(["none", "none", "default", "argument"])
        if self.language == "fortran" and self.stream == "argument":
            self.stream = "none"
        if self.is_kernel:
            self.stream = "launch"
        uses = ["in"] + [self.rng.choice(["in", "in", "out", "inout"])
                         for _ in range(count - 1)]
        uses += [self.rng.choice(["out", "out", "inout"])]
        if self.rng.random() < 0.2:
            uses[0] = "inout"
        self.reaches = any(self.reach[d] for d in self.dims)
        for t, use in enumerate(uses):
            order = self.dims if self.rng.random() < 0.7 else \
                self.rng.sample(self.dims, len(self.dims))
            if t > 0 and self.rng.random() < 0.25:
                # What is written has each dimension that it does not see
                # whole.
                order = [d for d in order if self.rng.random() < 0.6 or
                         (use != "in" and self.reach[d] != "all")]
                order = order or list(self.dims)
            self.add_tensor(use, order)
        if not self.reaches or self.ghosted or self.rng.random() < 0.1:
            for _ in range(self.rng.choice([0, 0, 1, 2])):
                self.add_result()
        # The lead: the first input with most dimensions.
        most = max(len(t["dims"]) for t in self.tensors)
        leads = [t for t in self.tensors if len(t["dims"]) == most]
        self.lead = self.tensors.index(
            ([t for t in leads if t["use"] == "in"] or leads)[0])

    def add_tensor(self, use, order):
        name = f"t{len(self.tensors)}"
        element = self.rng.choice(list(ELEMENTS) if self.language == "c" else
                                  CXX_ELEMENTS if self.is_kernel else
                                  ["float", "double", "int", "int64_t"])
        strides = ghosts = None
        if self.ghosted and (not self.tensors or self.rng.random() < 0.8):
            ghosts = [self.ghost[d] for d in order]
        elif self.rng.random() < 0.3:
            strides, step = [], "1"
            for d in reversed(order):
                strides.insert(0, step)
                gap = self.rng.choice([0, 0, 1, 3])
                e = self.extent[d]
                e = f"({e} + {gap})" if gap else e
                step = f"{step} * {e}" if step != "1" else e
            if self.rng.random() < 0.2:
                strides[-1] = "1"
            if sum(map(len, strides)) > 90:  # a line has 196 characters
                strides = None
        self.tensors.append({"name": name, "use": use, "element": element,
                             "dims": list(order), "strides": strides,
                             "ghosts": ghosts})
        self.add(name, use, element, tensor=len(self.tensors) - 1)

    def extent_of(self, tensor, i):
        ghosts = sum((tensor.get("ghosts") or {i: (0, 0)})[i])
        extent = self.extent[tensor["dims"][i]]
        return f"{extent} + {ghosts}" if ghosts else extent

    def add_result(self):
        name = f"r{len(self.tensors)}"
        element = self.rng.choice(["float", "double", "int", "long"])
        combine = self.rng.choice(["sum", "max", "min"] + ["mean"] * (
            element in ("float", "double") and self.stream == "none"))
        self.tensors.append({
            "name": name, "use": "result", "element": element, "dims": [],
            "count": self.rng.choice([1, 1, 3]), "combine": combine,
            "strides": None})
        self.add(name, "out", element, tensor=len(self.tensors) - 1)

    def draw_others(self):
        self.offsets = []
        for d in self.dims:
            if len(self.offsets) < 3 and self.rng.random() < 0.2:
                name = f"{d.lower()}0"
                wraps = self.border[d] == "wrap"
                self.add(name, "offset", "long" if wraps else
                         self.integer_type(), self.by_reference(), dim=d)
                self.offsets.append((name, d))
        room = 24 - len(self.arguments) - 2
        for n in range(min(room, self.rng.choice([0, 1, 2, 2, 4, 8, 24]))):
            what = self.rng.random()
            if self.language == "fortran":
                self.add(f"x{n}", "number", self.rng.choice(list(FORTRAN)),
                         True)
            elif what < 0.15:
                members = [self.rng.choice([w for w in NUMBERS if " " not in w])
                           for _ in range(self.rng.choice([1, 2, 3, 5, 8]))]
                self.add(f"x{n}", "struct", members)
            elif what < 0.25:
                self.add(f"x{n}", self.rng.choice(["pointer", "in"]), "table")
            else:
                self.add(f"x{n}", "number", self.rng.choice(list(NUMBERS)),
                         self.by_reference())
        if self.stream == "argument":
            self.add("stream", "stream")
        returns = self.language != "fortran" and not self.is_kernel
        self.returns = self.rng.choice(RETURNS) if returns else "void"
        self.returned = None
        if returns and self.rng.random() < 0.3 and \
                (not self.reaches or self.ghosted):
            self.returns = self.rng.choice(RESULTS)
            self.returned = self.rng.choice(["sum", "max", "min"] + ["mean"] * (
                self.returns in ("float", "double")))

    def draw_grid(self):
        """Which dimensions each of x, y and z goes over, in tiles of some
        elements: a block has a tile of each (apart) or so many elements of all
        together. The kernel goes over looped ones itself. Of those in `unsaid`
        the section says nothing. blocks: what else the grid has."""
        self.grid, self.looped, self.unsaid = {}, [], []
        self.blocks = [self.rng.randint(1, 3) for _ in "xyz"]
        self.block = [self.rng.randint(1, 8) for _ in "xyz"]
        for d in self.dims:
            where = self.rng.choice(["x", "x", "y", "y", "z", "loop"])
            if self.rng.random() < 0.1:
                self.unsaid.append(d)
            if where == "loop":
                self.looped.append(d)
            else:
                self.grid.setdefault(where, []).append(d)
        for where, dims in self.grid.items():
            apart = len(dims) == 1 or self.rng.random() < 0.5
            tiles = [self.rng.choice([1, 2, 3, 4, 7, 32])
                     for _ in (dims if apart else [0])]
            self.grid[where] = (dims, tiles, apart)
            if any(d in self.unsaid for d in dims):
                self.unsaid += [d for d in dims if d not in self.unsaid]

    def size_name(self, d):
        return next(a["name"] for a in self.arguments if a["class"] == "size"
                    and a["value"] == f"E[{DIMS.index(d)}]")

    def grid_said(self):
        items = []
        for where, (dims, tiles, apart) in self.grid.items():
            if dims[0] in self.unsaid:
                continue
            names = [self.size_name(d) for d in dims]
            if not apart:
                names = [" * ".join(names)]
            # All quotients are rounded up, or all are as C rounds them.
            parts, up = [], self.rng.random() < 0.5
            for name, tile in zip(names, tiles):
                many = "*" in name
                if tile == 1 and self.rng.random() < 0.7:
                    parts.append(name)
                elif up:
                    parts.append(f"{name} / {tile}")
                else:
                    parts.append(f"({name} + {tile - 1}) / {tile}")
                if len(tiles) > 1 and not many:
                    parts[-1] = f"({parts[-1]})"
            items.append(f"{where}: " + " * ".join(parts))
        said = [self.size_name(d) for d in self.looped if d not in self.unsaid]
        if said:
            items.append("loop: " + " ".join(said))
        self.rng.shuffle(items)
        return ", ".join(items)

    # ---- what it costs, and whether it can be split ------------------------

    def extents(self, at_least):
        """Extents of the whole; at_least: for each dimension that is split,
        the number of its pieces."""
        out = {}
        for d in DIMS:
            if d not in self.dims:
                out[d] = 1
            elif d in at_least:
                most = {1: 24, 2: 12}.get(len(self.dims), 7)
                out[d] = self.rng.randint(at_least[d], max(at_least[d], most))
            else:
                out[d] = self.rng.randint(1, {1: 12, 2: 8, 3: 5}.get(
                    len(self.dims), 3))
        return out

    def work(self, extents):
        window = elements = 1
        for d in self.dims:
            r = self.reach[d]
            window *= extents[d] if r == "all" else 2 * r + 1
            elements *= extents[d]
        return elements * window * len(self.tensors) ** 2

    def fits(self, split):
        """Whether it may be split so."""
        if max(map(len, self.section("").splitlines())) > 190:
            return False  # a line has 196 characters
        if self.is_kernel and any(d in self.unsaid and self.reach[d]
                                  for d in split):
            return False
        reaches = [d for d in self.dims if d in split and self.reach[d] and
                   not self.ghosted]
        if not any(d in self.dims for d in split):
            return False
        if (self.returned or any(t["use"] == "result"
                                 for t in self.tensors)) and (
                reaches or any(d not in self.tensors[self.lead]["dims"]
                               for d in split)):
            return False
        # A section that splits D matches tensors of five dimensions.
        return "D" in self.dims or "D" not in split

    def spelt_reach(self, d):
        before, behind = self.sees[d]
        return self.reach[d] if self.reach[d] == "all" or before == behind \
            else f"{before}:{behind}"

    # ---- text --------------------------------------------------------------

    def section(self, symbol):
        lines = [f"[function {self.name}]", f"symbol = {symbol}"]
        if self.is_kernel:
            patterns = [self.name] if self.language == "c" else \
                [f"solver::{self.name}", f"*{self.name}E*"] + \
                [symbol] * (len(symbol) < 40)
            lines = [f"[kernel {self.rng.choice(patterns)}]"]
        words = []
        for a in self.arguments:
            star = self.rng.choice([" *", "* ", "&"]) if a["reference"] else " "
            if a["class"] == "struct":
                words.append(f"struct {{{' '.join(a['type'])}}} {a['name']}")
            elif a["class"] in ("size", "number", "offset"):
                words.append(f"{a['type']}{star}{a['name']}")
            elif a["class"] == "stream":
                words.append(self.rng.choice(["stream", "stream stream"]))
            else:
                words.append(f"{a['class']} {a['name']}")
        while words:
            count = self.rng.randint(1, 3)
            if sum(map(len, words[:count])) > 150:
                count = 1
            lines.append("arguments = " + ", ".join(words[:count]))
            words = words[count:]
        for t in self.tensors:
            if t["use"] == "result":
                inside = str(t["count"]) if t["count"] > 1 else \
                    self.rng.choice(["", "1"])
            else:
                inside = " ".join(f"{d}={self.extent_of(t, i)}"
                                  for i, d in enumerate(t["dims"]))
            line = f"tensor = {t['name']}: {t['element']} [{inside}]"
            if self.ghosted and t["use"] != "result" and not t["ghosts"]:
                line += " ghosts [" + " ".join("0" for d in t["dims"]) + "]"
            if t.get("ghosts"):
                line += " ghosts [" + " ".join(
                    f"{a}" if a == b and self.rng.random() < 0.8 else
                    f"{a}:{b}" for a, b in t["ghosts"]) + "]"
            if t["strides"]:
                line += f" strides [{'  '.join(t['strides'])}]"
            lines.append(line)
        lines.append("reach = " + self.rng.choice([" ", ", "]).join(
            f"{d}:{self.spelt_reach(d)}" for d in self.dims))
        lines.append("border = " + " ".join(f"{d}:{self.border[d]}"
                                            for d in self.dims))
        if self.offsets:
            lines.append("offset = " + ", ".join(f"{name} {d}" for name, d in
                                                 self.offsets))
        results = [t for t in self.tensors if t["use"] == "result"]
        words = [f"{t['combine']} {t['name']}" for t in results]
        if self.returned:
            words.append(f"{self.returned} return {self.returns}")
        self.rng.shuffle(words)
        if words:
            lines.append("result = " + ", ".join(words))
        if any(t["use"] == "inout" for t in self.tensors):
            lines.append("copy = yes")
        if self.pure and not words:
            lines.append("pure = yes")
        if self.is_kernel:
            lines.append("grid = " + self.grid_said())
        elif self.stream != "argument":
            lines.append(f"stream = {self.stream}")
        return "\n".join(lines) + "\n"
