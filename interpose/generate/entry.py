# SPDX-License-Identifier: Apache-2.0
"""An intercepted function and its parameters: what the tables say of them, and
what follows from that."""
import re

from families import FAMILIES, ROLES

OPERAND_KINDS = 'tensor filter sequence limits'.split()
# What a call does to memory through a pointer: reads, writes.
ACCESSES = {'in': (1, 0), 'out': (1, 1), 'inout': (1, 1), 'device': (1, 1),
            'workspace': (1, 1), 'reserve': (1, 1), 'read': (1, 0),
            'written': (0, 1)}
# Classes of memory whose sizes other parameters say: how many may be named.
SIZED_CLASSES = {'read': (1, 3), 'written': (1, 3), 'allocated': (1, 2)}
# Values that cuBLAS may write to host memory before it returns and that do
# not have a type of their own: bytes of which parameter.
RESULTS = {
    'cudaEventElapsedTime': ('ms', 'sizeof *ms'),
    'cublasGetVector': ('y', 'incy == 1 ? (size_t)n * (size_t)elemSize : 0'),
    'cublasGetMatrix': ('B', 'ldb == rows ? (size_t)rows * (size_t)cols * '
                             '(size_t)elemSize : 0'),
}
# Which argument a parameter of these classes is; the others' rows say it.
ARGUMENT_OF = {'handle': 'HANDLE', 'opdesc': 'OP', 'opdesc2': 'OP2',
               'workspace': 'WORKSPACE', 'workspace_bytes': 'WORKSPACE_BYTES',
               'reserve': 'RESERVE', 'reserve_bytes': 'RESERVE_BYTES'}
NAMED_CLASSES = 'scalar host value device'.split()
# cuBLAS' calls on vectors, and which op of sdg_vector_t (rules/vendor/vector.h)
# they are.
VECTOR = (r'cublasI?(?:[SDCZ]|Sc|Dz|Cs|Zd)?(nrm2|dot[uc]?|asum|ama?x|amin|copy|'
          r'axpy|scal|swap|rotm?)(Ex|_v2)(_64)?')
VECTOR_OPS = {'nrm2': 'NRM2', 'asum': 'ASUM', 'dot': 'DOT', 'dotu': 'DOT',
              'dotc': 'DOT', 'amax': 'INDEX', 'amin': 'INDEX', 'copy': 'COPY',
              'axpy': 'AXPY', 'scal': 'SCAL', 'swap': 'SWAP', 'rot': 'ROT',
              'rotm': 'ROT'}


class Parameter:
    """A row `NAME CLASS [ARGUMENT] : C TYPE` of an entry; kind is the class."""

    def __init__(self, name, words, ctype):
        self.name, self.kind, self.ctype = name, words[0], ctype
        self.words = words[1:]
        self.argument = words[1] if len(words) > 1 else None
        self.direction = words[2] if len(words) > 2 else None

    def is_operand(self):
        return self.kind in OPERAND_KINDS

    def is_data(self):
        return self.kind in ('in', 'out', 'inout')

    def named(self):
        """The row of arguments.def that it is, or None."""
        return ARGUMENT_OF.get(self.kind) or (
            self.argument if self.kind in NAMED_CLASSES else None)

    def type_kind(self):
        """SDG_<this> of arguments.def takes its C type."""
        ctype = self.ctype.removeprefix('const ')
        if self.kind == 'scalar':
            return 'SCALAR'
        if ctype.endswith('*') or re.search(r'(Handle|Descriptor)_t$', ctype):
            return 'POINTER'
        return {'size_t': 'SIZE', 'double': 'NUMBER'}.get(ctype, 'INT')


class Entry:
    """An intercepted function."""

    def __init__(self, name, prototype, library, kind, flags, ctype):
        self.name, self.prototype = name, prototype
        self.library, self.kind, self.ctype = library, kind, ctype
        self.query = 'query' in flags
        self.everything = 'everything' in flags
        self.called = 'called' in flags
        self.space = 'space' in flags
        self.before = 'before' in flags
        self.answered = 'answered' in flags
        self.changed = 'changed' in flags
        self.hosted = 'hosted' in flags
        self.extern = 'extern' in flags
        self.is_shown = not name.startswith('__') and not self.extern
        self.parameters = []
        self.writes = ''  # what it writes, as entries.def says it

    def typed(self):
        """The declaration that has its type. One of our own where the vendor's
        header may lack it, or may know types for it that others lack."""
        return self.prototype if self.is_shown else f'type_of_{self.prototype}'

    def of_kind(self, *kinds):
        return [p for p in self.parameters if p.kind in kinds]

    def operands(self):
        return [p for p in self.parameters if p.is_operand()]

    def is_op(self):
        return self.kind in FAMILIES

    def is_product(self):
        """Of matrices: a rule reads its sizes, which no descriptor has."""
        return self.kind == 'matmul' and self.library.startswith('cublas')

    def is_captured(self):
        """A rule can reach an op only through an activation."""
        return self.is_product() or self.is_op() and any(
            'SDG_ROLE_IS_ACTIVATION' in ROLES[p.argument]
            for p in self.operands())

    def is_armed(self):
        return self.is_captured() or self.kind in (
            'create', 'set', 'destroy', 'opaque', 'text', 'copy', 'sync',
            'reset', 'graph', 'shadow', 'execute')

    def accesses(self):
        return [p for p in self.parameters if p.kind in ACCESSES and
                p.ctype.endswith('*')]

    def result(self):
        """What cuBLAS may write to host memory: parameter, bytes."""
        if not self.library.startswith(('cublas', 'cudart')):
            return None
        for p in self.parameters:
            if p.name == 'result' and p.ctype == 'void *':
                return p.name, 'sdg_capture_type_bytes((int)resultType)'
            if p.name == 'result':
                return p.name, 'sizeof *result'
        return RESULTS.get(self.name.replace('_64', ''))

    def is_polling(self):
        """Asks how far the device is, by which allocators decide."""
        return self.prototype in ('cudaEventQuery', 'cudaStreamQuery')

    def is_timing(self):
        """Measures a time, by which autotuners end their loops."""
        return self.name == 'cudaEventElapsedTime'

    def is_measuring(self):
        """Times algorithms, in the order of which a program chooses."""
        return self.name.startswith('cudnnFind')

    def is_touching(self):
        """Needs a probe in the whole view that it needs nowhere else."""
        if self.kind in ('allocate', 'free', 'unseen'):
            return True
        return (self.is_product() or not self.is_captured()
                ) and (self.kind != 'opaque' or self.space) and bool(
            self.accesses() or self.everything or self.is_polling() or
            self.result() or
            self.of_kind('everything'))

    def vector_op(self):
        """SDG_VECTOR_<this> is what it does; None: no call on vectors."""
        match = self.library == 'cublas' and re.fullmatch(
            VECTOR, self.prototype, re.I)
        return VECTOR_OPS[match[1].lower()] if match else None

    def gives_value(self):
        return self.vector_op() in ('NRM2', 'ASUM', 'DOT')

    def is_noted(self):
        """Needs a probe in the shard view once a plan has written something:
        what is known of the memory that it writes changes; or it makes a value
        of what is in pieces. So does a clock that the ranks share."""
        if self.is_timing():
            return True
        return bool(self.vector_op()) or self.is_product() or bool(
            self.writes and not self.is_captured()) or bool(
            self.library == 'cudart' and (
                self.of_kind('written') or
                self.name.startswith('cudaMem') and self.of_kind('everything')))

    def is_launch(self):
        """Launches a kernel of the program's, makes it a node of a graph, or
        registers it with the runtime."""
        return self.kind in ('node', 'register') or any(
            p.name == 'args' and p.ctype == 'void **'
            for p in self.parameters)

    def leaves(self):
        """Writes memory besides its operands' and its vectors'."""
        return bool(self.writes or self.is_captured() and
                    self.library == 'cudnn' and sized_rooms(self))

    def has_args(self):
        return self.is_captured() or self.is_touching()

    def family(self):
        return self.kind if self.is_op() else 'other'

    def declaration(self):
        return ', '.join(join(p.ctype, p.name)
                         for p in self.parameters) or 'void'

    def arguments(self):
        return ', '.join(p.name for p in self.parameters)


def sized_rooms(entry):
    """Workspaces and reserves with their sizes."""
    return [(at.name, size.name) for kind in ('workspace', 'reserve')
            for at in entry.of_kind(kind)[:1]
            for size in entry.of_kind(kind + '_bytes')[:1]]


def join(ctype, name):
    return ctype + name if ctype.endswith('*') else f'{ctype} {name}'



def is_coordinates(data):
    return len(data.words) > 1 and \
        'SDG_ROLE_IS_COORDINATES' in ROLES[data.words[1]]


def is_output(entry, operand):
    for p in entry.parameters:
        if p.is_data() and p.argument == operand.name and \
                not is_coordinates(p):
            return p.kind != 'in'
    if operand.direction:
        return operand.direction == 'out'
    return 'SDG_ROLE_IS_WRITTEN' in ROLES[operand.argument]


def role_of(data, operand):
    return data.words[1] if len(data.words) > 1 else operand.argument


def operand_rows(entry):
    """Returns a tuple for each operand: its role, its kind, the names of its
    descriptor and of its data pointer, and whether it is written. Data with a
    role of its own is an operand of its own, and so is each of several
    sequences with one descriptor. Data that the op's descriptor describes are
    parameters. Coordinates come last."""
    rows = []
    for operand in entry.operands():
        data = [p for p in entry.parameters
                if p.is_data() and p.argument == operand.name and
                not is_coordinates(p)]
        if data and (operand.kind == 'sequence' or
                     any(len(p.words) > 1 for p in data)):
            rows += [(role_of(p, operand), operand.kind, operand.name, p.name,
                      p.kind != 'in') for p in data]
        else:
            rows.append((operand.argument, operand.kind, operand.name,
                         data[0].name if data else None,
                         is_output(entry, operand)))
    op = [p.name for p in entry.of_kind('opdesc')]
    rows += [(p.words[1], 'parameters', p.argument, p.name, p.kind != 'in')
             for p in entry.parameters
             if p.is_data() and p.argument in op and len(p.words) > 1]
    rows += [(p.words[1], 'coordinates', p.argument, p.name, p.kind != 'in')
             for p in entry.parameters if p.is_data() and is_coordinates(p)]
    return rows

