# SPDX-License-Identifier: Apache-2.0
"""Generates how a call on vectors becomes an sdg_vector_t, and back."""

# Which member of sdg_vector_t (rules/vendor/vector.h) a parameter is by its
# name.
VECTOR_MEMBERS = {
    'handle': 'handle', 'n': 'n', 'x': 'x', 'y': 'y', 'incx': 'incx',
    'incy': 'incy', 'result': 'result', 'xType': 'type_x', 'yType': 'type_y',
    'resultType': 'type_result', 'executionType': 'type_execution',
    'executiontype': 'type_execution', 'alpha': 'scalar', 'c': 'scalar',
    'param': 'scalar', 's': 'scalar2', 'alphaType': 'type_scalar',
    'csType': 'type_scalar', 'paramType': 'type_scalar'}
# The type of an element by the C type of a pointer.
VECTOR_TYPES = {'float': 'CUDA_R_32F', 'double': 'CUDA_R_64F',
                'cuComplex': 'CUDA_C_32F', 'cuDoubleComplex': 'CUDA_C_64F',
                'int': 'CUDA_R_32I', 'int64_t': 'CUDA_R_64I'}


def vector(e):
    """Fills in sdg_vector_t from an entry's arguments."""
    fill = {'op': f'SDG_VECTOR_{e.vector_op()}', 'entry_name': f'"{e.name}"',
            'type_x': '-1', 'type_y': '-1', 'type_result': '-1'}
    for p in e.parameters:
        if p.name in VECTOR_MEMBERS:
            member = VECTOR_MEMBERS[p.name]
            cast = '(int)' if member.startswith('type') else ''
            fill[member] = f'{cast}args->{p.name}'
        if p.ctype.endswith('*'):
            base = p.ctype.replace('const ', '').replace('*', '').strip()
            if base in VECTOR_TYPES and p.name in VECTOR_MEMBERS:
                fill[f'type_{VECTOR_MEMBERS[p.name]}'] = \
                    f'(int){VECTOR_TYPES[base]}'
        if p.name == 'csType':
            fill['type_scalar2'] = f'(int)args->{p.name}'
        if p.name in ('alpha', 'c', 'param'):  # a rotation has five
            fill['scalars'] = '5' if p.name == 'param' else '1'
    return [f'static void vector_{e.name}(const void *all, sdg_vector_t *out)'
            ' {',
            f'  const struct sdg_args_{e.name} *args = all;',
            '  *out = (sdg_vector_t){',
            *(f'      .{member} = {value},' for member, value in fill.items()),
            '  };', '}', '']


def vector_call(e):
    """Calls the real function with the vectors of an sdg_vector_t."""
    arguments = []
    for p in e.parameters:
        member = VECTOR_MEMBERS.get(p.name)
        if not member or member == 'handle' or member.startswith('type'):
            arguments.append(f'args->{p.name}')
        else:
            cast = '' if p.ctype.endswith('*') else f'({p.ctype})'
            arguments.append(f'{cast}vector->{member}')
    return [f'static int vector_call_{e.name}(const void *all,',
            '    const sdg_vector_t *vector) {',
            f'  const struct sdg_args_{e.name} *args = all;',
            f'  return (int)REAL({e.name}, {e.typed()})('
            f'{", ".join(arguments)});', '}', '']
