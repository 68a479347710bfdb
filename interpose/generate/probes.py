# SPDX-License-Identifier: Apache-2.0
"""Generates probes.c: checks against the vendors' headers, the functions of
each entry, and the table of entries (sdg_entry_t of interpose/slot.h)."""
from arguments import args_struct
from entry import ACCESSES, SIZED_CLASSES, join, operand_rows
from kernel import kernel_probe
from probe import probe
from shard import noted_probe
from snippets import HEAD_C
from whole import whole_probe
from writes import writes_of

OPENING = r'''#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <nccl.h>
#include <stdlib.h>

/* Nothing of ours is found through the global offset table. */
#pragma GCC visibility push(hidden)
#include "interpose/capture.h"
#include "interpose/descriptor.h"
#include "interpose/function/kernel.h"
#include "interpose/graph/execute.h"
#include "interpose/slot.h"
#include "rules/vendor/args.h"
#include "rules/vendor/writes.h"
#include "src/comm/comm.h"
#include "src/comm/device_wait.h"
#include "src/exchange/graph.h"
#include "src/geometry/hint.h"
#include "rules/place/label.h"
#include "src/job/job.h"
#include "src/call/tag.h"
#pragma GCC visibility pop

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define COLD __attribute__((noinline, cold))
/* Compilers that know no musttail jump when they optimise; a test
 * looks at the code. */
#if __has_attribute(musttail)
#define TAIL __attribute__((musttail))
#else
#define TAIL
#endif
#define REAL(entry, prototype) \
  ((__typeof__(&prototype))atomic_load_explicit( \
      &sdg_real[SDG_ENTRY_##entry], memory_order_relaxed))

/* The rows of the table are the vendor's prototypes. */'''
REFUSALS = {'cudart': 'RUNTIME', 'cudnn': 'CUDNN', 'nccl': 'NCCL'}


def more_type(e):
    """Only its type is used: of functions that have one parameter more in the
    runtime of CUDA 12. What its caller has left there is passed on to others,
    which do not read it."""
    return (f'extern {join(e.ctype, f"more_{e.name}")}({e.declaration()}, '
            'void *more);')


def prototype_check(e):
    if not e.is_shown:  # only other compilers, or versions, are shown it
        return f'extern {join(e.ctype, e.typed())}({e.declaration()});'
    types = ', '.join(p.ctype for p in e.parameters) or 'void'
    return (f'_Static_assert(__builtin_types_compatible_p('
            f'__typeof__(&{e.name}), {e.ctype} (*)({types})), "{e.name}");')


def functions(e):
    out = []
    if e.has_args() and e.library not in ('cudart', 'cudnn'):
        out += args_struct(e)
    if e.leaves():
        out += writes_of(e)
    if e.is_armed():
        out += probe(e)
    if e.is_touching():
        out += whole_probe(e)
    if e.is_noted():
        out += noted_probe(e)
    if e.is_launch():
        out += kernel_probe(e)
    return out


# ---- the table of entries --------------------------------------------------

def function_members(e):
    """Which functions stand for the entry."""
    members = [(e.is_armed(), 'probe', f'(void *)probe_{e.name}'),
               (e.is_touching(), 'whole', f'(void *)whole_{e.name}'),
               (e.is_noted(), 'shard', f'(void *)shard_{e.name}'),
               (e.is_launch(), 'kernel', f'(void *)kernel_{e.name}'),
               (e.space, 'space', 'true'),
               (e.vector_op(), 'vector', f'vector_{e.name}'),
               (e.leaves(), 'writes', f'writes_{e.name}'),
               (e.gives_value(), 'vector_call', f'vector_call_{e.name}'),
               (e.kind in ('allocate', 'free'), 'memory', 'true'),
               (e.is_product(), 'product', f'product_{e.name}')]
    return [f'    .{member} = {value},'
            for has, member, value in members if has]


def offset(e, name):
    """Where the struct of arguments has a parameter."""
    return (f'offsetof(struct sdg_args_{e.name}, {name})' if name
            else 'SDG_ENTRY_NOWHERE')


def memory_members(e):
    """What the entry does to memory."""
    everything = e.everything or bool(e.of_kind('everything'))
    per_thread = e.name != e.prototype
    out = [f'    .everything = {str(everything).lower()},',
           f'    .per_thread = {str(per_thread).lower()},',
           f'    .accesses = {len(e.accesses())},']
    if not e.accesses():
        return out
    out.append('    .access = (const sdg_entry_access_t[]){')
    for p in e.accesses():
        reads, writes = ACCESSES[p.kind]
        if p.kind == 'device' and p.ctype.startswith('const '):
            writes = 0
        sizes = p.words if p.kind in SIZED_CLASSES else []
        sizes = [offset(e, name) for name in sizes] + 3 * ['SDG_ENTRY_NOWHERE']
        out.append(f'      {{{offset(e, p.name)}, {reads}, {writes}, '
                   f'{sizes[0]}, {sizes[1]}, {sizes[2]}}},')
    return out + ['    },']


def argument_members(e):
    out = []
    for member, kind in (('handle', 'handle'), ('op', 'opdesc'),
                         ('stream', 'stream')):
        found = e.of_kind(kind)
        out.append(f'    .{member} = '
                   f'{offset(e, found[0].name if found else None)},')
    return out + memory_members(e)


def operand_members(e):
    rows = operand_rows(e)
    updated = [p.name for p in e.of_kind('inout')]
    out = [f'    .operands = {len(rows)},', '    .operand = {']
    for role, kind, descriptor, data, written in rows:
        out.append(f'      {{SDG_ROLE_{role}, SDG_OPERAND_{kind.upper()}, '
                   f'{str(written).lower()}, {str(data in updated).lower()}, '
                   f'{offset(e, descriptor)}, {offset(e, data)}}},')
    return out + ['    },']


def entry_row(e):
    refusal = ('TEXT' if e.ctype == 'void'
               else REFUSALS.get(e.library, 'CUBLAS'))
    return [f'  [SDG_ENTRY_{e.name}] = {{', f'    .name = "{e.name}",',
            f'    .library = SDG_LIBRARY_{e.library.upper()},',
            f'    .family = SDG_FAMILY_{e.family().upper()},',
            f'    .refusal = SDG_REFUSAL_{refusal},',
            f'    .is_query = {str(e.query).lower()},',
            f'    .stub = sdg_stub_{e.name},', *function_members(e),
            *(argument_members(e) if e.has_args() else []),
            *(operand_members(e) if e.is_captured() else []), '  },']


def probes_c(entries):
    out = [HEAD_C, OPENING]
    out += [prototype_check(e) for e in entries if e.name == e.prototype]
    out += [more_type(e) for e in entries
            if e.changed and e.name == e.prototype]
    out.append('')
    for e in entries:
        out += functions(e)
    out += [f'extern char sdg_stub_{e.name}[] '
            '__attribute__((visibility("hidden")));' for e in entries]
    out += ['', 'const sdg_entry_t sdg_entry[SDG_ENTRY_COUNT] = {']
    for e in entries:
        out += entry_row(e)
    out += ['};', '', 'const char *const sdg_entry_name[SDG_ENTRY_COUNT] = {']
    out += [f'  [SDG_ENTRY_{e.name}] = "{e.name}",' for e in entries]
    return '\n'.join(out + ['};', ''])
