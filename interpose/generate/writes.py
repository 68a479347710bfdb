# SPDX-License-Identifier: Apache-2.0
"""Generates what a call writes besides its operands: an sdg_writes_t."""
import re
import sys

from entry import sized_rooms
from vector import VECTOR_TYPES

# Where in memory a call of cuBLAS and NCCL finds the type of an element.
TYPE_OF = {'A': 'Atype', 'B': 'Btype', 'C': 'Ctype', 'a': 'abType',
           'b': 'abType', 'c': 'csType', 's': 'csType', 'd1': 'd1Type',
           'd2': 'd2Type', 'x1': 'x1Type', 'param': 'paramType'}
# The memory that a descriptor of this type tells of.
FOOTPRINTS = {'cudnnTensorDescriptor_t': 'tensor',
             'cudnnRNNDataDescriptor_t': 'rnn',
             'cudnnSpatialTransformerDescriptor_t': 'grid',
             'cublasLtMatrixLayout_t': 'layout'}


def writes_of(e):
    """Fills in sdg_writes_t from an entry's arguments."""
    by_name = {p.name: p for p in e.parameters}

    def expression(text):
        text = re.sub(r'\b[A-Za-z_]\w*\b(?!\s*\()', lambda m: f'args->{m[0]}'
                      if m[0] in by_name else m[0], text)
        return text.replace('RANKS', 'sdg_comm_size(args->comm)')

    def each(name):
        if by_name[name].ctype.removeprefix('const ') != 'void *':
            return f'sizeof *args->{name}'
        if e.library == 'nccl':
            return 'sdg_comm_type_bytes(args->datatype)'
        if 'elemSize' in by_name:
            return '(size_t)args->elemSize'
        if TYPE_OF.get(name) in by_name:
            return f'sdg_cublas_type_bytes((int)args->{TYPE_OF[name]})'
        if e.library == 'cudnn':
            return '1'
        sys.exit(f'{e.name}: no type of an element of {name}')

    def is_zero(name):
        base = re.sub(r'const |[ *]', '', by_name[name].ctype)
        return (f'sdg_scalar_is_zero(args->handle, args->{name}, '
                f'{VECTOR_TYPES[base]})')

    def footprint(name, extents, descriptor):
        if descriptor:
            kind = FOOTPRINTS[by_name[descriptor].ctype.removeprefix('const ')]
            return (f'sdg_footprint_of_{kind}(args->{name}, '
                    f'args->{descriptor})')
        extents = [f'(int64_t)({expression(x)})' for x in extents.split(',')]
        rows, columns, ld = {1: [*extents, '1', '1'], 2: ['1', *extents],
                             3: extents}[len(extents)]
        return (f'sdg_footprint(args->{name}, {each(name)}, {rows}, {columns}, '
                f'{ld})')

    place = r'(\w+)(?:\[([^]]*)\]|\{(\w+)\})'
    lines, reads = [], []
    for item in e.writes.split('; ') if e.writes else ():
        if item == 'everything':
            lines.append('  out->everything = true;')
            continue
        match = re.fullmatch(r'(update |partial )?' + place +
                             r'(\+beta)?(?: kept (.*?))?( of(?: .*)?)?', item)
        if not match:
            sys.exit(f'{e.name}: not what a call writes: {item}')
        how, name, extents, descriptor, beta, kept, of = match.groups()
        kept = ('true' if how == 'update ' else f'!{is_zero("beta")}' if beta
                else expression(kept) if kept else 'false')
        lines += [f'  sdg_writes_add(out, (sdg_write_t){{',
                  f'      .to = {footprint(name, extents, descriptor)},',
                  f'      .kept = {kept},',
                  f'      .partial = {str(how == "partial ").lower()},',
                  f'      .made = {str(bool(of)).lower()}}});']
        for read in re.finditer(place + r'(?:\*(\w+))?', of or ''):
            line = f'sdg_writes_read(out, {footprint(*read.groups()[:3])});'
            if read[4]:
                line = f'if (!{is_zero(read[4])})\n    {line}'
            reads.append('  ' + line)
    if e.library == 'cudnn':
        lines += [f'  sdg_writes_add(out, (sdg_write_t){{.to = sdg_footprint('
                  f'args->{at}, 1, (int64_t)args->{size}, 1, 1)}});'
                  for at, size in sized_rooms(e)]
    return [f'static void writes_{e.name}(const void *all, sdg_writes_t *out)'
            ' {',
            f'  const struct sdg_args_{e.name} *args = all;',
            f'  *out = (sdg_writes_t){{.name = "{e.name}"}};',
            '  (void)args;', *lines, *reads, '}', '']
