# SPDX-License-Identifier: Apache-2.0
"""Writes drawn functions and kernels in C, C++ and Fortran, and calls of them."""
import os
import re
import subprocess

from prototypes import DIMS, ELEMENTS, FORTRAN, NUMBERS

USES = {"in": "USE_IN", "out": "USE_OUT", "inout": "USE_INOUT",
        "result": "USE_RESULT"}
COMBINE = {"sum": "s", "max": "x", "min": "n", "mean": "m"}
KINDS = {"f": "f", "i": "i", "u": "u", "b": "b", "h": "i"}


def parameter(f, a):
    """An argument's declaration in C."""
    if a["class"] == "struct":
        return f"struct {f.name}_{a['name']} {a['name']}"
    if a["class"] in ("size", "number", "offset"):
        if a["reference"]:
            return f"const {NUMBERS[a['type']]} *{a['name']}"
        return f"{NUMBERS[a['type']]} {a['name']}"
    if a["class"] == "stream":
        return "cudaStream_t stream"
    if a["type"] == "table":
        return f"const unsigned *{a['name']}"
    const = "const " if a["class"] == "in" else ""
    return f"{const}{ELEMENTS[a['type']][0]} *{a['name']}"


def structs(f):
    return "".join(
        "struct %s_%s {%s};\n" % (f.name, a["name"], " ".join(
            f"{NUMBERS[m]} m{i};" for i, m in enumerate(a["type"])))
        for a in f.arguments if a["class"] == "struct")


def declaration(f, name):
    """Of the function that computes. A kernel's finds its launch, too."""
    launch = ["dim3 grid", "dim3 block"] if f.is_kernel else []
    return (f"{f.returns} {name}("
            f"{', '.join(launch + [parameter(f, a) for a in f.arguments])})")


def stub(f):
    """What the program launches."""
    return (f"void {f.name}({', '.join(parameter(f, a) for a in f.arguments)})"
            " { abort(); }\n")


def twin(f, name):
    """What the host device calls in place of a kernel."""
    values = "".join(
        f", *({parameter(f, a).rsplit(' ', 1)[0]} "
        f"{'*' * parameter(f, a).rsplit(' ', 1)[1].count('*')}*)args[{i}]"
        for i, a in enumerate(f.arguments))
    return (f"void {name}(dim3 grid, dim3 block, void **args) "
            f"{{ body_{f.index}(grid, block{values}); }}\n")


def needed(f, where, extent):
    """The blocks that cover all elements; extent(d): C of an extent."""
    if where not in f.grid:
        return str(f.blocks["xyz".index(where)])
    dims, tiles, apart = f.grid[where]
    texts = [f"{extent(d)}" for d in dims]
    if not apart:
        texts = [" * ".join(texts)]
    return " * ".join(f"(({text} + {tile - 1}) / {tile})"
                      for text, tile in zip(texts, tiles))


def launch_look(f):
    """A kernel that is launched with too few blocks, or far too many, or other
    threads, computes something else. Some more are right: `grid` may say of a
    quotient what it would be rounded down, and it is rounded up."""
    lines = []
    for i, where in enumerate("xyz"):
        need = needed(f, where, lambda d: f"run.extent[{DIMS.index(d)}]")
        more = f"grid.{where} > 8 * ({need})" if where in f.grid else \
            f"grid.{where} != {need}"
        lines.append(f"  if (grid.{where} < {need} || {more} || "
                     f"block.{where} != {f.block[i]}) run.hash = 0;")
    return lines


def prototype(f):
    rows = []
    for t in f.tensors:
        _, kind, size = ELEMENTS[t["element"]]
        ghosts = t.get("ghosts") or [(0, 0)]
        rows.append("{%s, '%s', %d, %d, '%s', %d, {%s}, {%s}, {%s}}" % (
            USES[t["use"]], KINDS[kind], size, t.get("count", 0),
            COMBINE.get(t.get("combine"), "-"), len(t["dims"]),
            ", ".join(str(DIMS.index(d)) for d in t["dims"]) or "0",
            ", ".join(str(a) for a, _ in ghosts),
            ", ".join(str(b) for _, b in ghosts)))
    has = {d for t in f.tensors if t.get("ghosts")
           for d, (a, b) in zip(t["dims"], t["ghosts"]) if a + b}
    reach = [{"all": -2}.get(f.reach.get(d, 0), f.reach.get(d, 0))
             for d in DIMS]
    return ("const struct prototype prototype_%d = {\"%s\", %d, {%s}, {%s}, {%s}, {%s}, "
            "\"%s\", {%s}, %d};\n" % (
                f.index, f.name, len(f.tensors), ", ".join(rows),
                ", ".join(map(str, reach)),
                *(", ".join(str(f.sees.get(d, (0, 0))[side]) for d in DIMS)
                  for side in (0, 1)),
                "".join(f.border.get(d, "own")[0] for d in DIMS),
                ", ".join(str(int(d in has)) for d in DIMS), f.lead))


def value_of(a):
    return ("*" if a["reference"] else "") + a["name"]


def body(f):
    lines = ["{", "  struct run run = {.extent = {1, 1, 1, 1, 1},"
             " .offset = {NO_OFFSET, NO_OFFSET, NO_OFFSET, "
             "NO_OFFSET, NO_OFFSET}, .hash = 1};"]
    sizes = [a for a in f.arguments if a["class"] == "size"]
    for a in f.arguments:
        if a["class"] == "number":
            lines.append(f"  {{ {NUMBERS[a['type']]} v = {value_of(a)}; "
                         "run.hash = hash_bytes(run.hash, &v, sizeof v); }")
        elif a["class"] == "struct":
            lines += [f"  run.hash = hash_bytes(run.hash, &{a['name']}.m{i}, "
                      f"sizeof {a['name']}.m{i});"
                      for i in range(len(a["type"]))]
        elif a["type"] == "table":
            lines.append(f"  run.hash = mix(run.hash, {a['name']}[3]);")
        elif a["class"] == "offset":
            lines.append(f"  run.offset[{DIMS.index(a['dim'])}] = "
                         f"(int64_t){value_of(a)};")
        elif a["class"] == "stream":
            lines.append("  cudaStreamSynchronize(stream);")
    if f.stream == "default":
        lines.append("  cudaStreamSynchronize(NULL);")
    lines.append("  { const long long " + ", ".join(
        f"{a['name']}_ = (long long){value_of(a)}" for a in sizes) + ";")
    def spelt(text):
        return re.sub(r"[a-z]+", lambda m: m.group() + "_", text)
    for d in f.dims:
        lines.append(f"    run.extent[{DIMS.index(d)}] = {spelt(f.extent[d])};")
    for t, tensor in enumerate(f.tensors):
        lines.append(f"    run.data[{t}] = (void *){tensor['name']};")
        for i, text in enumerate(strides(f, tensor)):
            lines.append(f"    run.stride[{t}][{i}] = {spelt(text)};")
    lines.append("  }")
    if f.is_kernel:
        lines += launch_look(f)
    lines += [f"  callee_compute(&prototype_{f.index}, &run);"]
    if f.returned:
        lines.append(f"  {{ {f.returns} all; callee_result(&prototype_"
                     f"{f.index}, &run, '{COMBINE[f.returned]}', "
                     f"'{'f' if f.returns in ('float', 'double') else 'i'}', "
                     "sizeof all, &all); return all; }")
    elif f.returns == "const char *":
        lines.append('  return "name" + run.hash % 3;')
    elif f.returns != "void":
        lines.append(f"  return ({f.returns})(run.hash & 127);")
    return "\n".join(lines + ["}"]) + "\n"


def strides(f, tensor):
    if tensor["strides"]:
        return tensor["strides"]
    out, step = [], "1"
    for i in reversed(range(len(tensor["dims"]))):
        out.insert(0, step)
        step = f"{step} * ({f.extent_of(tensor, i)})"
    return out


def caller(f, symbol):
    """The function that calls it with arguments for extents E."""
    lines = []
    passed = []
    for a in f.arguments:
        name = a["name"]
        if a["class"] == "size":
            lines.append(f"  {NUMBERS[a['type']]} {name} = "
                         f"({NUMBERS[a['type']]})({a['value']});")
        elif a["class"] == "number":
            number = f"{3 + f.rng.randint(0, 50)} + step"
            lines.append(f"  {NUMBERS[a['type']]} {name} = "
                         f"({NUMBERS[a['type']]})({number});")
        elif a["class"] == "offset":
            lines.append(f"  {NUMBERS[a['type']]} {name} = "
                         f"{f.rng.randint(0, 9)};")
        elif a["class"] == "struct":
            lines.append(f"  struct {f.name}_{name} {name};")
            lines.append(f"  memset(&{name}, step + 17 * whole, "
                         f"sizeof {name});")
            for i, m in enumerate(a["type"]):
                lines.append(f"  {name}.m{i} = ({NUMBERS[m]})"
                             f"({f.rng.randint(0, 90)} + step);")
        if a["class"] == "stream":
            passed.append("stream")
        elif a["type"] == "table":
            passed.append("table")
        elif "tensor" in a:
            passed.append(f"data[{a['tensor']}]")
        else:
            passed.append(("&" if a["reference"] else "") + name)
    text = f"{declaration(f, 'ref_' + str(f.index))};\n"
    label = f' __asm__("{symbol}")'
    if f.is_kernel:
        text += f"void real_{f.index}(void){label};\n"
    else:
        text += f"{declaration(f, 'real_' + str(f.index))}{label};\n"
    text += (f"uint64_t call_{f.index}(const int64_t *E, void **data, "
             "cudaStream_t stream, int step, int whole) {\n"
             "  static const unsigned table[] = {4, 3, 2, 1};\n"
             "  uint64_t got = 0;\n  (void)table, (void)stream, (void)step;\n")
    text += "\n".join(lines) + "\n"
    call = f"(whole ? ref_{f.index} : real_{f.index})({', '.join(passed)})"
    if f.is_kernel:
        text += kernel_call(f, passed)
    elif f.returns == "void":
        text += f"  {call};\n"
    elif f.returned == "mean":
        text += f"  double mean = (double){call} * 1e4;\n"
        text += "  got = (uint64_t)(int64_t)(mean < 0 ? mean - 1 : mean + 1);\n"
    else:
        text += (f"  {f.returns} returned = {call};\n")
        text += ("  got = hash_bytes(got, returned, 2);\n" if
                 f.returns == "const char *" else
                 "  got = hash_bytes(got, &returned, sizeof returned);\n")
    text += "  return got;\n}\n"
    text += f"void strides_{f.index}(const int64_t *E, int64_t (*S)[DIMS]) {{\n"
    text += "".join(f"  int64_t {a['name']} = {a['value']};\n"
                    f"  (void){a['name']};\n"
                    for a in f.arguments if a["class"] == "size")
    for t, tensor in enumerate(f.tensors):
        for i, stride in enumerate(strides(f, tensor)):
            text += f"  S[{t}][{i}] = {stride};\n"
    return text + "  (void)S, (void)E;\n}\n"


def kernel_call(f, passed):
    grid = ", ".join(f"(unsigned)({needed(f, w, lambda d: f'E[{DIMS.index(d)}]')})"
                     for w in "xyz")
    text = (f"  dim3 grid = {{{grid}}}, block = "
            f"{{{', '.join(map(str, f.block))}}};\n  (void)got;\n")
    # Arrays are no addresses of pointers.
    text += "  const unsigned *at_table = table;\n  (void)at_table;\n"
    args = ", ".join("&" + ("at_table" if value == "table" else value)
                     for value in passed)
    text += f"  void *args[] = {{{args}}};\n"
    stream = f.rng.choice(["stream", "stream", "NULL"])
    return text + (
        f"  if (whole) ref_{f.index}({', '.join(['grid', 'block'] + passed)});\n"
        f"  else kernel_launch((const void *)real_{f.index}, grid, block, args, "
        f"{stream}, step + {f.index});\n")


def registration(f, symbol):
    return (f'  kernel_register((const char *)real_{f.index}, "{symbol}");\n'
            if f.is_kernel else "")


def fortran(f):
    """A subroutine that gives its arguments to the body in C."""
    names = [a["name"] for a in f.arguments]
    lines = [f"subroutine {f.name}(" + ", &\n  ".join(names) + ")",
             "  implicit none"]
    for a in f.arguments:
        if a["class"] in ("size", "number", "offset"):
            lines.append(f"  {FORTRAN[a['type']]} :: {a['name']}")
        else:
            lines.append(f"  {FORTRAN[a['type']]} :: {a['name']}(*)")
    lines.append(f"  call body_{f.index}(" + ", &\n    ".join(names) + ")")
    return "\n".join(lines + ["end subroutine"]) + "\n"


HEAD = """#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __cplusplus
extern "C" {
#endif
#include "callee.h"
#ifdef __cplusplus
}
#endif
"""
TABLE = """
typedef struct function {
  const struct prototype *prototype;
  uint64_t (*call)(const int64_t *extent, void **data, cudaStream_t stream,
                   int step, int whole);
  void (*strides)(const int64_t *extent, int64_t (*out)[DIMS]);
  bool on_host, near; /* near: what it returns is rounded */
  bool is_kernel;
} function_t;
extern const function_t functions[];
void kernels_register(void);
void kernel_register(const char *stub, const char *symbol);
/* way: one of the functions that launch, by its remainder. */
void kernel_launch(const void *stub, dim3 grid, dim3 block, void **args,
                   cudaStream_t stream, int way);
"""


def write(folder, name, text):
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)


def compile_all(folder, functions, here, root, cuda, runtime):
    """Makes libdrawn.so and the driver; returns the functions' symbols."""
    flags = ["-O1", "-g", "-w", "-fPIC", "-D_GNU_SOURCE", "-I" + folder,
             "-I" + here, "-I" + root, "-I" + os.path.join(cuda, "include")]

    def run(*command):
        subprocess.run(command, check=True, cwd=folder)
    by = {language: [f for f in functions if f.language == language]
          for language in ("c", "c++", "fortran")}
    def defined(f, name):
        """The function, or what the program launches and its twin."""
        if not f.is_kernel:
            return declaration(f, name) + body(f)
        text = declaration(f, f"body_{f.index}") + body(f) + stub(f)
        # A twin of C++ in the kernel's namespace, or one of C.
        if f.language == "c++" and f.index % 2:
            text += 'extern "C" '
        return text + twin(f, f.name + "__host")
    write(folder, "drawn.c", HEAD + "".join(
        structs(f) + prototype(f) +
        defined(f, f.name if f.language == "c" else f"body_{f.index}_")
        for f in by["c"] + by["fortran"]) + "".join(
            prototype(f) for f in by["c++"]))
    write(folder, "drawn.cpp", HEAD + "namespace solver {\n" + "".join(
        structs(f) + f"extern \"C\" const struct prototype prototype_{f.index};"
        "\n" + defined(f, f.name) for f in by["c++"]) + "}\n")
    write(folder, "drawn.f90", "".join(map(fortran, by["fortran"])))
    objects = ["drawn.c.o", "drawn.cpp.o"]
    run("gcc", *flags, "-c", "drawn.c", "-o", "drawn.c.o")
    run("g++", *flags, "-c", "drawn.cpp", "-o", "drawn.cpp.o")
    if by["fortran"]:
        run("gfortran", "-O1", "-g", "-w", "-fPIC", "-c", "drawn.f90", "-o",
            "drawn.f90.o")
        objects.append("drawn.f90.o")
    run("gcc", *flags, "-shared", "-o", "libdrawn.so", *objects,
        os.path.join(here, "callee.c"), runtime)
    names = subprocess.run(["nm", "-D", "--defined-only", "libdrawn.so"],
                           check=True, cwd=folder, stdout=subprocess.PIPE,
                           universal_newlines=True).stdout
    symbols = {}
    for f in functions:
        pattern = {"c": f"({f.name})", "fortran": f"({f.name}_)",
                   "c++": rf"(_ZN6solver\d+{f.name}E\w*)"}[f.language]
        symbols[f.name] = re.search(rf" T {pattern}$", names, re.M).group(1)
    write(folder, "functions.h", HEAD + TABLE)
    write(folder, "functions.c", '#include "functions.h"\n' + "".join(
        structs(f) + f"extern {prototype(f).split(' = ')[0]};\n" +
        caller(f, symbols[f.name]) +
        declaration(f, f"ref_{f.index}") + body(f) for f in functions) +
        "const function_t functions[] = {\n" + "".join(
            "  {&prototype_%d, call_%d, strides_%d, %d, %d, %d},\n" % (
                f.index, f.index, f.index, f.stream == "none",
                f.returned == "mean", f.is_kernel)
            for f in functions) + "};\nvoid kernels_register(void) {\n" + "".join(
                registration(f, symbols[f.name]) for f in functions) + "}\n")
    run("gcc", *flags, "-o", "driver", os.path.join(here, "driver.c"),
        "functions.c", "./libdrawn.so", runtime,
        "-Wl,-rpath," + folder)
    return symbols
