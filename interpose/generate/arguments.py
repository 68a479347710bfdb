# SPDX-License-Identifier: Apache-2.0
"""Generates the arguments of entries: their structs (args.h), where ops have
which and how they are called (invoke.c), and which entries rules/ calls
(called.def)."""
import re

from entry import join, operand_rows
from snippets import HEAD_C

C_TYPES = {'SCALAR': 'const void *', 'POINTER': 'void *', 'SIZE': 'size_t',
           'INT': 'int', 'NUMBER': 'double'}


def field(p):
    """A parameter as a struct member: top-level const would forbid filling."""
    ctype = re.sub(r'\bconst$', '', p.ctype).strip()
    if not ctype.endswith('*'):
        ctype = re.sub(r'^const ', '', ctype)
    return join(ctype, p.name)


def args_struct(e):
    return ([f'struct sdg_args_{e.name} {{'] +
            [f'  {field(p)};' for p in e.parameters] + ['};', ''])


def args_h(entries):
    out = [HEAD_C, '#ifndef SDG_RULES_ARGS_H', '#define SDG_RULES_ARGS_H', '',
           '#include <cuda_runtime_api.h>', '#include <cudnn.h>', '',
           'typedef enum sdg_entry_id {']
    out += [f'  SDG_ENTRY_{e.name},' for e in entries]
    out += ['  SDG_ENTRY_COUNT,', '} sdg_entry_id_t;', '']
    for e in entries:
        if e.has_args() and e.library in ('cudart', 'cudnn'):
            out += args_struct(e)
    out += ['/* Room for those of any op. */', 'typedef union sdg_args {']
    out += [f'  struct sdg_args_{e.name} {e.name};' for e in entries
            if e.is_captured() and e.library == 'cudnn']
    return '\n'.join(out + ['} sdg_args_t;', '', '#endif', ''])


def called_def(entries):
    return ''.join([HEAD_C, '\n'] + [f'SDG_VENDOR({e.name})\n'
                                     for e in entries if e.called])


def argument_rows(ops):
    """Where each op has which argument and tensor."""
    out = ['/* Fails to compile if the member has another size. */',
           '#define AT(entry, member, type) \\',
           '  (uint16_t)(offsetof(struct sdg_args_##entry, member) + \\',
           '             sizeof(char[sizeof((struct sdg_args_##entry *)0)'
           '->member == \\',
           '                                 sizeof(type) ? 1 : -1]))', '',
           'static const sdg_argument_row_t row_none;']
    for e in ops:
        fill, seen = [], set()

        def put(member, name, parameter, ctype):
            if parameter and (member, name) not in seen:
                seen.add((member, name))
                fill.append(f'    .{member}[{name}] = AT({e.name}, '
                            f'{parameter}, {ctype}),')
        for p in e.parameters:
            if p.named():
                put('argument', f'SDG_ARGUMENT_{p.named()}', p.name,
                    C_TYPES[p.type_kind()])
        for role, kind, descriptor, data, _ in operand_rows(e):
            if kind != 'coordinates':  # they have none of their own
                put('descriptor', f'SDG_ROLE_{role}', descriptor, 'void *')
            put('data', f'SDG_ROLE_{role}', data, 'void *')
        fill.append(f'    .operands = {len(operand_rows(e))},')
        out += [f'static const sdg_argument_row_t row_{e.name} = {{', *fill,
                '};']
    out += ['', 'const sdg_argument_row_t *sdg_argument_row(int entry) {',
            '  switch (entry) {']
    for e in ops:
        out += [f'  case SDG_ENTRY_{e.name}:', f'    return &row_{e.name};']
    return out + ['  default:', '    return &row_none;', '  }', '}', '']


def invoke_c(entries):
    ops = [e for e in entries if e.is_captured() and e.library == 'cudnn']
    out = [HEAD_C, '#include "rules/vendor/argument.h"', '',
           '#include "rules/vendor/vendor.h"', '', *argument_rows(ops),
           'size_t sdg_invoke_bytes(int entry) {', '  switch (entry) {']
    for e in ops:
        out += [f'  case SDG_ENTRY_{e.name}:',
                f'    return sizeof(struct sdg_args_{e.name});']
    out += ['  default:', '    return 0;', '  }', '}', '',
            'int sdg_invoke(int entry, const sdg_args_t *args) {',
            '  const sdg_cudnn_t *cudnn = sdg_cudnn_get();', '  if (!cudnn)',
            '    return CUDNN_STATUS_NOT_INITIALIZED;', '  switch (entry) {']
    for e in ops:
        if e.called:
            arguments = ', '.join(f'args->{e.name}.{p.name}'
                                  for p in e.parameters)
            out += [f'  case SDG_ENTRY_{e.name}:',
                    f'    return (int)cudnn->{e.name}({arguments});']
    return '\n'.join(out + ['  default:',
                            '    return CUDNN_STATUS_NOT_SUPPORTED;', '  }',
                            '}', ''])
