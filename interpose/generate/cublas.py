# SPDX-License-Identifier: Apache-2.0
"""Reads cublas.def: prototypes, where a parameter's type tells its class."""
import re
import sys

from entry import Entry, Parameter
from table import declared

# Products of matrices. Of those with groups the sizes are in arrays.
PRODUCT = r'cublas(Lt)?(\w*gem[mv]|Gemm|Matmul)(?!GroupedB|Bias|\w*Grouped)'
# In a row of cublas.def that stands for several functions: what T and R are by
# the letter of the function's name.
PRECISIONS = {
    letter: types for letters, types in (
        ('S s', ('float', 'float')), ('D d', ('double', 'double')),
        ('C c Sc Cs', ('cuComplex', 'float')),
        ('Z z Dz Zd', ('cuDoubleComplex', 'double')))
    for letter in letters.split()}


def parameter_of(text):
    """A parameter of a C prototype, with its class by its type alone."""
    ctype, name = declared(text)
    if ctype.count('*') > 1:
        kind = 'everything'
    elif ctype.endswith('*'):
        kind = 'device'
    elif ctype == 'cublasHandle_t':
        kind = 'handle'
    else:
        kind = 'stream' if ctype == 'cudaStream_t' else 'value'
    return Parameter(name, [kind], ctype)


def in_precision(parameters, letter):
    value, real = PRECISIONS[letter]
    return re.sub(r'\bR\b', real, re.sub(r'\bT\b', value, parameters))


def in_64_bits(parameters):
    return re.sub(r'(?<!long )\bint\b', 'int64_t', parameters)


def functions_of(row):
    """The functions that a row of cublas.def stands for: flag, name,
    parameters, what they write."""
    match = re.fullmatch(r'(extern |unseen )?(\w+)(?:\{([\w,]+)\}(\w+))?'
                         r'(\[_64\])?\((.*?)\)(?: writes (.*))?', row)
    if not match:
        sys.exit(f'cublas.def: not "NAME(TYPE PARAMETER, ...)": {row}')
    flag, name, letters, rest, wide, parameters, writes = match.groups()
    for letter in letters.split(',') if letters else ['']:
        full = name + letter + (rest or '')
        typed = in_precision(parameters, letter) if letter else parameters
        yield flag, full, typed, writes
        if wide:
            yield flag, full + '_64', in_64_bits(typed), writes


def read_prototypes(path):
    entries = []
    text = ''.join(line for line in open(path) if not line.startswith('#'))
    for row in re.sub(r'\n +', ' ', text).split('\n'):
        for flag, name, parameters, writes in functions_of(row) if row else ():
            kind = ('unseen' if flag == 'unseen ' else
                    'matmul' if re.match(PRODUCT, name) else 'memory')
            entry = Entry(name, name, 'cublas', kind, [], 'cublasStatus_t')
            entry.is_shown = not flag
            entry.parameters = [parameter_of(p.strip())
                                for p in parameters.split(',') if p]
            entry.writes = writes or ''
            entries.append(entry)
            if not writes and kind == 'memory' and may_write(entry):
                sys.exit(f'{path}: nothing says what {name} writes')
    return entries


def may_write(entry):
    """Of cuBLAS: through a pointer of its own, but for calls on vectors, of
    which all is known, and values, which go to the host or are one element."""
    return not entry.vector_op() and any(
        p.kind == 'everything' or p.kind == 'device' and
        not p.ctype.startswith('const ') for p in entry.parameters)
