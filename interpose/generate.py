#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Expands interpose/entries.def to everything that depends on the list of
intercepted functions.

usage: generate.py OUTPUT entries.def cublas.def families.def arguments.def FILE
  OUTPUT  args.h   enum of the entries, a struct of arguments per captured one
          probes.c typed probes, checks against the vendor's headers, entry table
          called.def the entries that rules/ calls
          invoke.c the ops and queries among these, called with a struct of
                   arguments; where each op has which argument
  stubs.S  exported stubs and their slots
          map      version script
          names    their names, as C's texts
"""
import re
import sys

OTHER_KINDS = ('create set destroy opaque pass text copy sync allocate free '
               'memory unseen reset graph node register shadow execute').split()
OPERAND_KINDS = 'tensor filter sequence limits'.split()
PLAIN_CLASSES = ('handle seqdata opdesc opdesc2 created changed destroyed device '
                 'scalar workspace workspace_bytes reserve reserve_bytes host lengths '
                 'value said everything freed stream').split()
# What a call does to memory through a pointer: reads, writes.
ACCESSES = {'in': (1, 0), 'out': (1, 1), 'inout': (1, 1), 'device': (1, 1),
            'workspace': (1, 1), 'reserve': (1, 1), 'read': (1, 0),
            'written': (0, 1)}
# Kinds of memory whose sizes are given by parameters, named as arguments.
SIZED_CLASSES = {'read': (1, 3), 'written': (1, 3), 'allocated': (1, 2)}
# What the first parameter of such an entry is.
SUBJECTS = {'create': 'created', 'set': 'changed', 'destroy': 'destroyed'}
LIBRARIES = 'cudnn cudart cublas cublasLt nccl'.split()
# Values that cuBLAS may write to host memory before it returns and that do
# not have a type of their own: bytes of which parameter.
RESULTS = {
    'cudaEventElapsedTime': ('ms', 'sizeof *ms'),
    'cublasGetVector': ('y', 'incy == 1 ? (size_t)n * (size_t)elemSize : 0'),
    'cublasGetMatrix': ('B', 'ldb == rows ? (size_t)rows * (size_t)cols * '
                             '(size_t)elemSize : 0'),
}
# Products of matrices, and which member of sdg_gemm_t (rules/vendor/gemm.h) a
# parameter is by its name. Of those with groups the sizes are in arrays.
PRODUCT = r'cublas(Lt)?(\w*gem[mv]|Gemm|Matmul)(?!GroupedB|Bias|\w*Grouped)'
MEMBERS = {
    'handle': 'handle', 'lightHandle': 'handle', 'transa': 'op_a',
    'transb': 'op_b', 'trans': 'op_a', 'm': 'm', 'n': 'n', 'k': 'k',
    'batchCount': 'batch', 'alpha': 'alpha', 'beta': 'beta',
    'A': 'a', 'B': 'b', 'C': 'c', 'x': 'b', 'y': 'c', 'lda': 'lda',
    'ldb': 'ldb', 'ldc': 'ldc', 'incx': 'ldb', 'incy': 'ldc',
    'strideA': 'stride_a', 'strideB': 'stride_b', 'strideC': 'stride_c',
    'stridex': 'stride_b', 'stridey': 'stride_c', 'Atype': 'type_a',
    'Btype': 'type_b', 'Ctype': 'type_c', 'computeType': 'compute'}
LT_MEMBERS = {
    **MEMBERS, 'C': 'c_in', 'D': 'c', 'computeDesc': 'desc',
    'Adesc': 'layout_a', 'Bdesc': 'layout_b', 'Cdesc': 'layout_c',
    'Ddesc': 'layout_d', 'workspace': 'workspace',
    'workspaceSizeInBytes': 'workspace_bytes'}
# By the letter of a function's name; of others the entry says the types.
LETTERS = {'S': ('CUDA_R_32F', 'CUBLAS_COMPUTE_32F'),
           'D': ('CUDA_R_64F', 'CUBLAS_COMPUTE_64F'),
           'H': ('CUDA_R_16F', 'CUBLAS_COMPUTE_16F'),
           'C': ('CUDA_C_32F', '-1'), 'Z': ('CUDA_C_64F', '-1')}
# Calls on vectors, and which member of sdg_vector_t (rules/vendor/vector.h) a
# parameter is by its name.
VECTOR = (r'cublasI?(?:[SDCZ]|Sc|Dz|Cs|Zd)?(nrm2|dot[uc]?|asum|ama?x|amin|copy|'
          r'axpy|scal|swap|rotm?)(Ex|_v2)(_64)?')
VECTOR_OPS = {'nrm2': 'NRM2', 'asum': 'ASUM', 'dot': 'DOT', 'dotu': 'DOT',
              'dotc': 'DOT', 'amax': 'INDEX', 'amin': 'INDEX', 'copy': 'COPY',
              'axpy': 'AXPY', 'scal': 'SCAL', 'swap': 'SWAP', 'rot': 'ROT',
              'rotm': 'ROT'}
VECTOR_MEMBERS = {
    'handle': 'handle', 'n': 'n', 'x': 'x', 'y': 'y', 'incx': 'incx',
    'incy': 'incy', 'result': 'result', 'xType': 'type_x', 'yType': 'type_y',
    'resultType': 'type_result', 'executionType': 'type_execution',
    'executiontype': 'type_execution', 'alpha': 'scalar', 'c': 'scalar',
    'param': 'scalar', 's': 'scalar2', 'alphaType': 'type_scalar',
    'csType': 'type_scalar', 'paramType': 'type_scalar'}
# In a row of cublas.def that stands for several functions: what T and R are by
# the letter of the function's name.
PRECISIONS = {
    letter: types for letters, types in (
        ('S s', ('float', 'float')), ('D d', ('double', 'double')),
        ('C c Sc Cs', ('cuComplex', 'float')),
        ('Z z Dz Zd', ('cuDoubleComplex', 'double')))
    for letter in letters.split()}
# By the C type of a pointer.
VECTOR_TYPES = {'float': 'CUDA_R_32F', 'double': 'CUDA_R_64F',
                'cuComplex': 'CUDA_C_32F', 'cuDoubleComplex': 'CUDA_C_64F',
                'int': 'CUDA_R_32I', 'int64_t': 'CUDA_R_64I'}
# Of families.def: flags by a family's word, and by a role's name.
FAMILIES, ROLES = {}, {}
# Of arguments.def: the kind of C type by an argument's name.
ARGUMENTS = {}
# Which argument a parameter of these classes is; the others' rows say it.
ARGUMENT_OF = {'handle': 'HANDLE', 'opdesc': 'OP', 'opdesc2': 'OP2',
               'workspace': 'WORKSPACE', 'workspace_bytes': 'WORKSPACE_BYTES',
               'reserve': 'RESERVE', 'reserve_bytes': 'RESERVE_BYTES'}
NAMED_CLASSES = 'scalar host value device'.split()
C_TYPES = {'SCALAR': 'const void *', 'POINTER': 'void *', 'SIZE': 'size_t',
           'INT': 'int', 'NUMBER': 'double'}
OPERANDS_MAX = 12  # SDG_OPERANDS_MAX of src/call/call.h
SAID_NUMBERS_MAX = 8  # SDG_SAID_NUMBERS_MAX of interpose/capture.h
ACCESSES_MAX = 32  # SDG_ACCESSES_MAX of src/call/memory_access.h


class Parameter:
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
    def __init__(self, name, prototype, library, kind, flags, ctype):
        self.name, self.prototype = name, prototype
        self.library, self.kind, self.ctype = library, kind, ctype
        self.query = 'query' in flags
        self.everything = 'everything' in flags
        self.called = 'called' in flags
        self.space = 'space' in flags
        self.before = 'before' in flags
        self.answered = 'answered' in flags
        self.is_shown = not name.startswith('__') and 'extern' not in flags
        self.parameters = []
        self.writes = ''  # what it writes, as entries.def says it

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
        """Of cuBLAS' calls on vectors; None: it is another."""
        match = self.library == 'cublas' and re.fullmatch(
            VECTOR, self.prototype, re.I)
        return VECTOR_OPS[match[1].lower()] if match else None

    def gives_value(self):
        return self.vector_op() in ('NRM2', 'ASUM', 'DOT')

    def is_noted(self):
        """Needs a probe in the shard view once a plan has written something:
        what it writes is known no more, or known anew; or it makes a value of
        what is in pieces. So does a clock that the ranks share."""
        if self.is_timing():
            return True
        return bool(self.vector_op()) or self.is_product() or bool(
            self.writes and not self.is_captured()) or bool(
            self.library == 'cudart' and (
                self.of_kind('written') or
                self.name.startswith('cudaMem') and self.of_kind('everything')))

    def is_launch(self):
        """Launches a kernel of the program's, or tells a graph to, or tells
        the runtime of one."""
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
    return [(at.name, bytes.name) for kind in ('workspace', 'reserve')
            for at in entry.of_kind(kind)[:1]
            for bytes in entry.of_kind(kind + '_bytes')[:1]]


def join(ctype, name):
    return ctype + name if ctype.endswith('*') else f'{ctype} {name}'


def read_families(path):
    text = open(path).read()
    for word, flags in re.findall(
            r'^SDG_FAMILY\w*\([^"]*"(\w+)",\s*\w+,\s*([^)]*)\)', text, re.M):
        FAMILIES[word] = re.findall(r'\w+', flags)
    for role, flags in re.findall(r'^SDG_ROLE\((\w+), "[^"]*",\s*([^)]*)\)',
                                  text, re.M):
        ROLES[role] = re.findall(r'\w+', flags)


def read_arguments(path):
    ARGUMENTS.update((name, kind) for kind, name in re.findall(
        r'^SDG_(\w+)\((\w+)\)', open(path).read(), re.M))


def rows(path):
    """The lines of entries.def with their numbers, without comments; what stands
    in parentheses is one line."""
    held = ''
    for number, line in enumerate(open(path), 1):
        if line.startswith('#') or not line.strip():
            continue
        line = f'{held} {line.strip()}' if held else line.rstrip()
        held = line if line.count('(') > line.count(')') else ''
        if not held:
            yield number, line


def declared(text):
    """C type and name of a prototype's parameter."""
    ctype, name = re.match(r'(.*?)(\w+(?:\[\])?)$', text).groups()
    if name.endswith('[]'):
        ctype, name = ctype.strip() + ' *', name[:-2]
    return re.sub(r'\* ?(?=const)', '*', ctype.strip()), name


def class_of(ctype, kind, is_first):
    """Of a parameter that entries.def lists in parentheses, None: its type does
    not tell."""
    if ctype.endswith('cudnnHandle_t'):
        return 'handle'
    if is_first and kind in SUBJECTS:
        return SUBJECTS[kind]
    if ctype == 'cudaStream_t':
        return 'stream'
    if not ctype.endswith('*'):
        return 'value'
    is_data = 'void' in ctype or ctype.count('*') > 1
    return None if is_data and kind != 'pass' else 'host'


def read(path):
    entries, group, seen, head = [], [], set(), None

    def fault(number, text):
        sys.exit(f'{path}:{number}: {text}')

    def begin(number, name, library, kind, flags, ctype):
        names = [name] + [f'{name}_{f}' for f in flags if f[:2] == 'pt']
        if seen & set(names):
            fault(number, f'{name} is in the table already')
        seen.update(names)
        group[:] = [Entry(n, name, library, kind, flags, ctype) for n in names]
        entries.extend(group)

    for number, line in rows(path):
        words = line.split()
        if words[0] in ('entry', 'entries'):
            left, arrow, ctype = line.partition(' -> ')
            named = words[0] == 'entry'
            names, words = left.split()[1:1 + named], left.split()[1 + named:]
            if not arrow or len(words) < 2:
                fault(number, 'not "entry NAME LIBRARY KIND ... -> TYPE"')
            library, kind, *flags = words
            if library not in LIBRARIES:
                fault(number, f'unknown library {library}')
            if kind not in [*FAMILIES, *OTHER_KINDS]:
                fault(number, f'unknown kind {kind}')
            if set(flags) - {'query', 'ptsz', 'ptds', 'everything', 'extern',
                             'called', 'space', 'before', 'answered'}:
                fault(number, f'unknown flag in {flags}')
            if {'before', 'answered'} & set(flags) and kind != 'shadow':
                fault(number, 'before and answered are of shadow entries')
            head = library, kind, flags, ctype
            for name in names:
                begin(number, name, *head)
            continue
        if line.startswith('  writes '):
            for entry in group:
                entry.writes = line.removeprefix('  writes ').strip()
            continue
        listed = re.fullmatch(r'  (\w*)\((.*)\)', line)
        if listed and listed[1] and head:
            begin(number, listed[1], *head)
        if listed and group:
            for ctype, name in map(declared, listed[2].split(', ')):
                kind = class_of(ctype, head[1], not group[0].parameters)
                if not kind:
                    fault(number, f'the type of {name} does not tell its class')
                for entry in group:
                    entry.parameters.append(Parameter(name, [kind], ctype))
            continue
        left, colon, ctype = line.strip().partition(' : ')
        name, *words = left.split()
        if not colon or not words or not group:
            fault(number, 'not "PARAMETER CLASS [ARGUMENT] : TYPE"')
        p = Parameter(name, words, ctype.strip())
        if p.is_operand():
            if p.argument not in ROLES:
                fault(number, f'unknown role {p.argument}')
        elif p.is_data():
            if len(p.words) > 1 and p.words[1] not in ROLES:
                fault(number, f'unknown role {p.words[1]}')
        elif p.kind in SIZED_CLASSES:
            if len(p.words) not in SIZED_CLASSES[p.kind]:
                fault(number, f'{p.kind} of {len(p.words)} sizes')
        elif p.kind not in PLAIN_CLASSES or (
                p.argument and p.kind not in NAMED_CLASSES + ['said']):
            fault(number, f'unknown class {" ".join(words)}')
        elif p.named() and ARGUMENTS.get(p.named()) != p.type_kind():
            fault(number, f'{name}: no SDG_{p.type_kind()}({p.named()})')
        for entry in group:
            entry.parameters.append(p)
    for e in entries:
        for p in e.parameters:
            if p.is_data() and p.argument not in [q.name for q in e.parameters]:
                sys.exit(f'{path}: {e.name} has no descriptor {p.argument} '
                         f'of {p.name}')
        if len(operand_rows(e)) > OPERANDS_MAX:
            sys.exit(f'{path}: {e.name} has too many operands')
        if len(e.accesses()) > ACCESSES_MAX:
            sys.exit(f'{path}: {e.name} has too many pointers')
    return entries


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
    """Of each operand its role, kind and descriptor, the name of its data
    pointer, and whether it is written. Data with a role of its own and sequences
    that share a descriptor are operands of their own; what the op's descriptor
    tells of are its parameters. Coordinates come last."""
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


HEAD_C = '''/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from interpose/entries.def; do not edit. */
'''


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


def fill_of(e):
    fill = ', '.join(f'.{p.name} = {p.name}' for p in e.parameters)
    return f'struct sdg_args_{e.name} all = {{{fill}}};'


def allocated_bytes(p):
    if len(p.words) == 2:
        return f'*{p.words[0]} * {p.words[1]}'
    return p.words[0]


def whole_probe(e):
    """What the whole view does around an entry that no rule judges."""
    call = f'REAL({e.name}, {e.prototype})({e.arguments()})'
    head = f'static {join(e.ctype, f"whole_{e.name}")}({e.declaration()}) {{'
    if e.kind == 'allocate':
        p = e.of_kind('allocated')[0]
        if p.ctype == 'void **':
            at, size = f'*{p.name}', allocated_bytes(p)
        else:
            at = f'{p.name}->ptr'
            size = (f'{p.name}->pitch * {p.words[0]}.height * '
                    f'{p.words[0]}.depth')
        return [head, f'  {e.ctype} status = {call};',
                '  if (status == cudaSuccess)',
                f'    sdg_capture_allocated({at}, {size},',
                '                          __builtin_return_address(0));',
                '  return status;', '}', '']
    if e.kind == 'free':
        p = e.of_kind('freed')[0]
        return [head, f'  sdg_capture_freed({p.name}, '
                      '__builtin_return_address(0));',
                f'  TAIL return {call};', '}', '']
    if e.kind == 'unseen':
        return [head,
                f'  int refusal = sdg_capture_unseen(SDG_ENTRY_{e.name}, '
                '__builtin_return_address(0));',
                '  if (refusal)', f'    return ({e.ctype})refusal;',
                f'  TAIL return {call};', '}', '']
    if e.is_polling():
        return [head, f'  {e.ctype} status = {call};',
                '  int first = status;',
                f'  int refusal = sdg_capture_polled(SDG_ENTRY_{e.name}, '
                '&first,',
                '                                   '
                '__builtin_return_address(0));',
                '  if (refusal)', f'    return ({e.ctype})refusal;',
                '  while (first == cudaSuccess && '
                'status == cudaErrorNotReady &&',
                '         sdg_capture_pause())', f'    status = {call};',
                '  if (status == cudaSuccess && !sdg_job_failed())',
                f'    return ({e.ctype})first;',
                f'  return ({e.ctype})sdg_capture_sync(SDG_ENTRY_{e.name}, '
                'status);', '}', '']
    if e.result() and not e.accesses():
        return [head, f'  {e.ctype} status = {call};',
                f'  int refusal = sdg_capture_result(SDG_ENTRY_{e.name}, '
                f'{e.result()[0]}, {e.result()[1]},',
                '                                   '
                '__builtin_return_address(0));',
                f'  return refusal ? ({e.ctype})refusal : status;', '}', '']
    if e.gives_value():
        return [head, f'  {fill_of(e)}', '  int made;',
                f'  if (sdg_capture_value(SDG_ENTRY_{e.name}, &all,',
                '                        __builtin_return_address(0), '
                '&made))',
                f'    return ({e.ctype})made;',
                f'  {e.ctype} status = {call};',
                f'  made = sdg_capture_result(SDG_ENTRY_{e.name}, '
                f'{e.result()[0]}, {e.result()[1]},',
                '                            __builtin_return_address(0));',
                f'  return made ? ({e.ctype})made : status;', '}', '']
    lines = [head, f'  {fill_of(e)}',
             f'  int refusal = sdg_capture_touch_memory(SDG_ENTRY_{e.name}, '
             '&all,',
             '                                         '
             '__builtin_return_address(0));',
             '  if (refusal)', f'    return ({e.ctype})refusal;']
    if e.kind in ('create', 'set', 'destroy', 'opaque'):
        return lines + [f'  return probe_{e.name}({e.arguments()});', '}', '']
    if e.result():
        return lines + [
            f'  {e.ctype} status = {call};',
            f'  refusal = sdg_capture_result(SDG_ENTRY_{e.name}, '
            f'{e.result()[0]}, {e.result()[1]},',
            '                               __builtin_return_address(0));',
            f'  return refusal ? ({e.ctype})refusal : status;', '}', '']
    if e.kind != 'sync':
        return lines + [f'  return {call};', '}', '']
    return lines + [
        f'  {e.ctype} status = {call};',
        '  if (LIKELY(status == cudaSuccess && !sdg_job_failed()))',
        '    return status;',
        f'  return ({e.ctype})sdg_capture_sync(SDG_ENTRY_{e.name}, status);',
        '}', '']


def kernel_probe(e):
    """What stands around a launch where the rules declare kernels."""
    if e.kind == 'register':
        return [
            f'static {join(e.ctype, f"kernel_{e.name}")}({e.declaration()}) {{',
            f'  sdg_kernel_register({e.parameters[3].name});',
            f'  TAIL return REAL({e.name}, {e.prototype})({e.arguments()});',
            '}', '']
    if e.kind == 'node':
        params = e.parameters[-1].name
        return [
            f'static {join(e.ctype, f"kernel_{e.name}")}({e.declaration()}) {{',
            f'  if ({params} &&',
            f'      sdg_kernel_node(SDG_ENTRY_{e.name}, {params}->func,',
            '                      __builtin_return_address(0)))',
            '    return cudaErrorLaunchFailure;',
            f'  TAIL return REAL({e.name}, {e.prototype})({e.arguments()});',
            '}', '']
    return [
        f'static {join(e.ctype, f"kernel_{e.name}")}({e.declaration()}) {{',
        f'  {fill_of(e)}', '  int result;',
        f'  if (sdg_kernel_capture(SDG_ENTRY_{e.name}, &all,',
        '                         __builtin_return_address(0), &result))',
        f'    return ({e.ctype})result;',
        f'  TAIL return REAL({e.name}, {e.prototype})({e.arguments()});',
        '}', '']


def product(e):
    """Fills in sdg_gemm_t from an entry's arguments."""
    members = LT_MEMBERS if e.library == 'cublasLt' else MEMBERS
    fill = {'kind': 'SDG_GEMM_LT' if e.library == 'cublasLt' else
            'SDG_GEMM_VECTOR' if 'gemv' in e.name else 'SDG_GEMM_MATRIX'}
    letter = re.match(r'cublas([SDHCZ])gem[mv](?!Ex|3mEx)', e.name)
    types, compute = LETTERS[letter[1]] if letter else ('-1', '-1')
    mixed = re.match(r'cublas[HT]S([HST])gemv', e.name)
    if mixed:  # no op computes these
        fill['type_c'] = {'H': 'CUDA_R_16F', 'S': 'CUDA_R_32F',
                          'T': 'CUDA_R_16BF'}[mixed[1]]
        compute = 'CUBLAS_COMPUTE_32F'
    if e.name.startswith('cublasSgemmEx'):
        compute = 'CUBLAS_COMPUTE_32F'
    fill = {'type_c': types, **fill, 'type_a': types, 'type_b': types,
            'compute': compute, 'batch': '1'}
    for p in e.parameters:
        if p.name in members:
            fill[members[p.name]] = f'args->{p.name}'
    fill['batched'] = 'true' if 'batch' in [
        members.get(p.name) for p in e.parameters] else 'false'
    if any(p.kind == 'everything' for p in e.parameters
           ) and e.library == 'cublas':
        fill['addresses'] = 'true'
    casts = {'op_a': '(int)', 'op_b': '(int)', 'type_a': '(int)',
             'type_b': '(int)', 'type_c': '(int)', 'compute': '(int)'}
    return [f'static void product_{e.name}(const void *all, sdg_gemm_t *out)'
            ' {',
            f'  const struct sdg_args_{e.name} *args = all;',
            '  *out = (sdg_gemm_t){',
            *(f'      .{member} = {casts.get(member, "")}{value},'
              for member, value in fill.items()), '  };', '}', '']


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
            f'  return (int)REAL({e.name}, {e.prototype})('
            f'{", ".join(arguments)});', '}', '']


def noted_probe(e):
    """What the shard view does around an entry that writes memory, or makes a
    value of it."""
    real = f'REAL({e.name}, {e.prototype})({e.arguments()})'
    if e.is_timing():
        return [
            f'static {join(e.ctype, f"shard_{e.name}")}({e.declaration()}) {{',
            f'  {e.ctype} status = {real};',
            f'  if (sdg_capture_timed(SDG_ENTRY_{e.name}, (int)status, '
            f'{e.parameters[0].name},',
            '                        __builtin_return_address(0)))',
            '    return cudaErrorLaunchFailure;',
            '  return status;', '}', '']
    untouched = (f'probe_{e.name}({e.arguments()})' if e.is_armed() else real)
    lines = vector(e) if e.vector_op() else []
    if e.gives_value():
        lines += vector_call(e)
    lines += [
        f'static COLD {join(e.ctype, f"noted_{e.name}")}({e.declaration()}) {{',
        f'  {fill_of(e)}']
    if e.is_product():  # that may be split is captured
        lines += [
            '  if (atomic_load_explicit(&sdg_slot_products_left, '
            'memory_order_relaxed))',
            f'    sdg_capture_passed(SDG_ENTRY_{e.name}, &all,',
            '                       __builtin_return_address(0));',
            f'  TAIL return {untouched};', '}', '']
        return lines + shard_probe(e, untouched)
    lines += [
        f'  int refusal = sdg_capture_note(SDG_ENTRY_{e.name}, &all,',
        '                                 __builtin_return_address(0));',
        '  if (refusal)', f'    return ({e.ctype})refusal;']
    if e.gives_value():
        lines += [
            f'  {e.ctype} status = {real};',
            f'  refusal = sdg_capture_made(SDG_ENTRY_{e.name}, &all, (int)status,',
            '                             __builtin_return_address(0));',
            f'  return refusal ? ({e.ctype})refusal : status;', '}', '']
    else:
        lines += [f'  TAIL return {untouched};', '}', '']
    return lines + shard_probe(e, untouched)


# Where in memory a call of cuBLAS and NCCL finds the type of an element.
TYPE_OF = {'A': 'Atype', 'B': 'Btype', 'C': 'Ctype', 'a': 'abType',
           'b': 'abType', 'c': 'csType', 's': 'csType', 'd1': 'd1Type',
           'd2': 'd2Type', 'x1': 'x1Type', 'param': 'paramType'}
# The memory that a descriptor of this type tells of.
STRETCHES = {'cudnnTensorDescriptor_t': 'tensor',
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

    def stretch(name, extents, descriptor):
        if descriptor:
            kind = STRETCHES[by_name[descriptor].ctype.removeprefix('const ')]
            return (f'sdg_stretch_of_{kind}(args->{name}, '
                    f'args->{descriptor})')
        extents = [f'(int64_t)({expression(x)})' for x in extents.split(',')]
        rows, columns, ld = {1: [*extents, '1', '1'], 2: ['1', *extents],
                             3: extents}[len(extents)]
        return (f'sdg_stretch(args->{name}, {each(name)}, {rows}, {columns}, '
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
                  f'      .to = {stretch(name, extents, descriptor)},',
                  f'      .kept = {kept},',
                  f'      .partial = {str(how == "partial ").lower()},',
                  f'      .made = {str(bool(of)).lower()}}});']
        for read in re.finditer(place + r'(?:\*(\w+))?', of or ''):
            line = f'sdg_writes_read(out, {stretch(*read.groups()[:3])});'
            if read[4]:
                line = f'if (!{is_zero(read[4])})\n    {line}'
            reads.append('  ' + line)
    if e.library == 'cudnn':
        lines += [f'  sdg_writes_add(out, (sdg_write_t){{.to = sdg_stretch('
                  f'args->{at}, 1, (int64_t)args->{size}, 1, 1)}});'
                  for at, size in sized_rooms(e)]
    return [f'static void writes_{e.name}(const void *all, sdg_writes_t *out)'
            ' {',
            f'  const struct sdg_args_{e.name} *args = all;',
            f'  *out = (sdg_writes_t){{.name = "{e.name}"}};',
            '  (void)args;', *lines, *reads, '}', '']


def shard_probe(e, untouched):
    return [
        f'static {join(e.ctype, f"shard_{e.name}")}({e.declaration()}) {{',
        '  if (LIKELY(!sdg_hint_any()))',
        f'    TAIL return {untouched};',
        f'  TAIL return noted_{e.name}({e.arguments()});', '}', '']


def measured(e, call):
    return [
        f'  {e.ctype} status = {call};',
        '  if (sdg_capture_watches())',
        '    sdg_capture_after((int)status);',
        '  if (status != CUDNN_STATUS_SUCCESS)',
        '    return status;',
        f'  result = sdg_capture_measured(SDG_ENTRY_{e.name}, '
        'returnedAlgoCount,',
        '                                perfResults, sizeof *perfResults,',
        '                                requestedAlgoCount,',
        '                                __builtin_return_address(0));',
        f'  return result ? ({e.ctype})result : status;']


def watched(e, call):
    return ['  if (LIKELY(!sdg_capture_watches()))',
            f'    return {call};',
            f'  {e.ctype} status = {call};',
            '  sdg_capture_after((int)status);',
            '  return status;']


def stood_in(e, head, call, lengths):
    """Sets a descriptor of sequences some of which may have no elements."""
    changed = e.of_kind('changed')[0].name
    caller = '__builtin_return_address(0)'
    given = re.sub(rf'\b{lengths}\b', f'given ? given : {lengths}', call)
    return [head,
            '  int *given = sdg_capture_lengths(nbDims, dimA, '
            f'seqLengthArraySize, {lengths},',
            f'                                   {caller});',
            f'  {e.ctype} status = {given};',
            '  if (status == CUDNN_STATUS_SUCCESS) {',
            f'    sdg_capture_touch({changed}, {caller});',
            '    if (given && !sdg_capture_said('
            f'{changed}, {lengths}, seqLengthArraySize))',
            '      status = CUDNN_STATUS_INTERNAL_ERROR;',
            '  }', '  free(given);', '  return status;', '}', '']


def remembered(e):
    """Stores what the vendor's library does not give back of a descriptor:
    numbers, then a list of a number's length."""
    said = e.of_kind('said')
    changed = e.of_kind('changed')[0].name
    numbers = [p.name for p in said if not p.argument]
    lists = [p for p in said if p.argument]
    if len(lists) > 1 or not 0 < len(numbers) <= SAID_NUMBERS_MAX:
        sys.exit(f'{e.name} says other things than numbers and a list')
    listed = (f'{lists[0].argument}, {lists[0].name}' if lists else '0, NULL')
    return [f'    const int said[] = {{{", ".join("(int)" + n for n in numbers)}}};',
            f'    if (!sdg_capture_say({changed}, {len(numbers)}, said, '
            f'{listed},',
            '                         __builtin_return_address(0)))',
            '      return CUDNN_STATUS_INTERNAL_ERROR;']


def graph_probe(e, head, call):
    """Makes, launches or destroys graphs, which may have tagged calls."""
    names = {'cudaGraphExec_t *': 'made', 'cudaGraphExec_t': 'exec',
             'cudaGraph_t': 'graph', 'cudaStream_t': 'stream'}
    use = [f'.{names[p.ctype]} = {p.name}' for p in e.parameters
           if p.ctype in names]
    if e.name != e.prototype and e.of_kind('stream'):
        stream = e.of_kind('stream')[0].name
        use[-1] = f'.stream = {stream} ? {stream} : cudaStreamPerThread'
    if 'Launch' in e.name:
        use.append('.launches = true')
    return [f'static COLD {e.ctype} graph_{e.name}({e.declaration()}) {{',
            f'  sdg_graph_use_t use = {{{", ".join(use)}}};',
            f'  int result = sdg_capture_graph_begin(SDG_ENTRY_{e.name}, &use,',
            '                                       '
            '__builtin_return_address(0));',
            '  if (result)',
            f'    return ({e.ctype})result;',
            f'  {e.ctype} status = {call};',
            f'  return ({e.ctype})sdg_capture_graph_end(SDG_ENTRY_{e.name}, '
            '&use, (int)status,',
            '                                '
            '__builtin_return_address(0));', '}', head,
            '  if (LIKELY(!atomic_load_explicit(&sdg_graph_used,',
            '                                   memory_order_relaxed)))',
            f'    TAIL return {call};',
            f'  TAIL return graph_{e.name}({e.arguments()});', '}', '']


def probe(e):
    real = f'REAL({e.name}, {e.prototype})'
    call = f'{real}({e.arguments()})'
    name = f'probe_{e.name}'
    head = f'static {join(e.ctype, name)}({e.declaration()}) {{'
    if e.is_product():
        return product(e) + [
            f'static COLD {e.ctype} capture_{e.name}({e.declaration()}) {{',
            f'  {fill_of(e)}',
            '  int result;',
            f'  if (sdg_capture(SDG_ENTRY_{e.name}, &all,',
            '                  __builtin_return_address(0), &result))',
            f'    return ({e.ctype})result;', *watched(e, call), '}', head,
            '  if (LIKELY(atomic_load_explicit(&sdg_slot_products_left,',
            '                                  memory_order_relaxed)))',
            f'    TAIL return {call};',
            f'  TAIL return capture_{e.name}({e.arguments()});', '}', '']
    if e.is_captured():
        tests = [f'sdg_tag_passes({p.name}, SDG_FAMILY_{e.kind.upper()})'
                 for p in e.of_kind('tensor', 'sequence', 'limits')]
        # Calls of each rank's own are checked against memory in pieces
        # (rules/place/own.h), which descriptors do not tell.
        judged = not {'SDG_FAMILY_WINDOWED', 'SDG_FAMILY_REDUCES'
                      }.isdisjoint(FAMILIES[e.kind])
        written = e.leaves() or any(
            data and out for _, _, _, data, out in operand_rows(e))
        # Others may write memory that is known to be in pieces.
        passing = []
        if written and not judged:
            passing = ['  if (' + ' && '.join(tests) +
                       ' && !sdg_job_failed()) {',
                       f'    sdg_capture_passed(SDG_ENTRY_{e.name}, &all,',
                       '                       __builtin_return_address(0));',
                       f'    return {call};', '  }']
        if judged or written:
            tests.append('!sdg_hint_any()')
        return [
            f'static COLD {e.ctype} capture_{e.name}({e.declaration()}) {{',
            f'  {fill_of(e)}',
            *passing,
            '  int result;',
            f'  if (sdg_capture(SDG_ENTRY_{e.name}, &all,',
            '                  __builtin_return_address(0), &result))',
            f'    return ({e.ctype})result;',
            *(measured(e, call) if e.is_measuring() else watched(e, call)),
            '}', head,
            '  if (LIKELY(' + ' &&\n             '.join(tests) + ' &&',
            '             !sdg_job_failed()))',
            f'    TAIL return {call};',
            f'  TAIL return capture_{e.name}({e.arguments()});', '}', '']
    if e.kind in ('create', 'set'):
        lengths = e.of_kind('lengths')
        if lengths:
            return stood_in(e, head, call, lengths[0].name)
        touched = [f'    sdg_capture_touch({"*" if p.kind == "created" else ""}'
                   f'{p.name}, __builtin_return_address(0));'
                   for p in e.of_kind('created', 'changed')]
        if e.of_kind('said'):
            touched += remembered(e)
        return [head, f'  {e.ctype} status = {call};',
                '  if (status == CUDNN_STATUS_SUCCESS) {', *touched, '  }',
                '  return status;', '}', '']
    if e.kind == 'destroy':
        return [head] + [
            f'  sdg_capture_forget({p.name}, __builtin_return_address(0));'
            for p in e.of_kind('destroyed')] + [
            f'  TAIL return {call};', '}', '']
    if e.kind == 'opaque':
        handle = e.of_kind('handle')
        return [head,
                f'  int result = sdg_capture_opaque(SDG_ENTRY_{e.name}, '
                f'{handle[0].name if handle else "NULL"},',
                '                                  '
                '__builtin_return_address(0));',
                '  if (result >= 0)',
                f'    return ({e.ctype})result;',
                f'  TAIL return {call};', '}', '']
    if e.kind == 'shadow':
        told = (f'    sdg_capture_{e.name}({e.arguments()},',
                '        __builtin_return_address(0));')
        if e.before:
            return [head, *told, f'  TAIL return {call};', '}', '']
        answer = [f'  int answer = sdg_answer_{e.name}({e.arguments()},',
                  '      __builtin_return_address(0));',
                  '  if (answer >= 0)',
                  f'    return ({e.ctype})answer;'] if e.answered else []
        return [head, *answer, f'  {e.ctype} status = {call};',
                '  if (status == CUDNN_STATUS_SUCCESS)', *told,
                '  return status;', '}', '']
    if e.kind == 'execute':
        plan = e.parameters[1].name
        return [f'static COLD {e.ctype} capture_{e.name}({e.declaration()}) {{',
                f'  int result = sdg_capture_execute(SDG_ENTRY_{e.name}, '
                f'{", ".join(p.name for p in e.parameters[:3])},',
                '                                   '
                '__builtin_return_address(0));',
                '  if (result >= 0)',
                f'    return ({e.ctype})result;', *watched(e, call), '}', head,
                f'  if (LIKELY(sdg_tag_passes({plan}, '
                'SDG_FAMILY_CONV_GRAPH) &&',
                '             !sdg_hint_any() && !sdg_label_any_at() &&',
                '             !sdg_job_failed()))',
                f'    TAIL return {call};',
                f'  TAIL return capture_{e.name}({e.arguments()});', '}', '']
    if e.kind == 'text':
        return [head, f'  if (!sdg_capture_text({e.arguments()}))',
                f'    {call};', '}', '']
    if e.kind == 'reset':
        return [head,
                '  if (sdg_capture_reset_due(__builtin_return_address(0))) {',
                '    (void)REAL(cudaDeviceSynchronize, '
                'cudaDeviceSynchronize)();',
                '    sdg_capture_reset();', '  }',
                f'  TAIL return {call};', '}', '']
    if e.kind == 'graph':
        return graph_probe(e, head, call)
    if e.kind == 'copy':
        return [head, '  if (LIKELY(!sdg_job_failed()))',
                f'    TAIL return {call};',
                '  return cudaErrorLaunchFailure;', '}',
                '']
    if e.name == 'cudaDeviceSynchronize':  # not while sundog captures
        begin = ['  sdg_device_wait_begin();', f'  {e.ctype} status = {call};',
                 '  sdg_device_wait_end();']
    else:
        begin = [f'  {e.ctype} status = {call};']
    return [head, *begin,
            '  if (LIKELY(status == cudaSuccess && !sdg_job_failed()))',
            '    return status;',
            f'  return ({e.ctype})sdg_capture_sync(SDG_ENTRY_{e.name}, status);',
            '}', '']


def memory_table(e, offset):
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
        sizes = [offset(name) for name in sizes] + 3 * ['SDG_ENTRY_NOWHERE']
        out.append(f'      {{{offset(p.name)}, {reads}, {writes}, '
                   f'{sizes[0]}, {sizes[1]}, {sizes[2]}}},')
    return out + ['    },']


def probes_c(entries):
    out = [HEAD_C, '#include <cublasLt.h>', '#include <cublas_v2.h>',
           '#include <cuda_runtime_api.h>', '#include <cudnn.h>',
           '#include <nccl.h>', '#include <stdlib.h>', '',
           '/* Nothing of ours is found through the global offset table. */',
           '#pragma GCC visibility push(hidden)',
           '#include "interpose/capture.h"', '#include "interpose/function/kernel.h"',
           '#include "interpose/graph/execute.h"',
           '#include "interpose/slot.h"',
           '#include "rules/vendor/args.h"', '#include "rules/vendor/writes.h"',
           '#include "src/comm/comm.h"', '#include "src/comm/device_wait.h"', '#include "src/exchange/graph.h"', '#include "src/geometry/hint.h"', '#include "rules/place/label.h"',
           '#include "src/job/job.h"', '#include "src/call/tag.h"', '#pragma GCC visibility pop', '',
           '#define LIKELY(condition) __builtin_expect(!!(condition), 1)',
           '#define COLD __attribute__((noinline, cold))',
           '/* Compilers that know no musttail jump when they optimise; a test',
           ' * looks at the code. */',
           '#if __has_attribute(musttail)',
           '#define TAIL __attribute__((musttail))', '#else', '#define TAIL',
           '#endif',
           '#define REAL(entry, prototype) \\',
           '  ((__typeof__(&prototype))atomic_load_explicit( \\',
           '      &sdg_real[SDG_ENTRY_##entry], memory_order_relaxed))', '',
           '/* The rows of the table are the vendor\'s prototypes. */']
    for e in entries:
        if e.name == e.prototype and not e.is_shown:
            # Only other compilers are shown its declaration.
            out.append(f'extern {join(e.ctype, e.name)}({e.declaration()});')
        elif e.name == e.prototype:
            out.append(f'_Static_assert(__builtin_types_compatible_p('
                       f'__typeof__(&{e.name}), {e.ctype} (*)('
                       f'{", ".join(p.ctype for p in e.parameters) or "void"}'
                       f')), "{e.name}");')
    out.append('')
    for e in entries:
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
    for e in entries:
        out.append(f'extern char sdg_stub_{e.name}[] '
                   '__attribute__((visibility("hidden")));')
    out += ['', 'const sdg_entry_t sdg_entry[SDG_ENTRY_COUNT] = {']
    for e in entries:
        refuse = {'cudart': 'RUNTIME', 'cudnn': 'CUDNN', 'nccl': 'NCCL'
                  }.get(e.library, 'CUBLAS')
        if e.ctype == 'void':
            refuse = 'TEXT'
        out += [f'  [SDG_ENTRY_{e.name}] = {{', f'    .name = "{e.name}",',
                f'    .library = SDG_LIBRARY_{e.library.upper()},',
                f'    .family = SDG_FAMILY_{e.family().upper()},',
                f'    .refusal = SDG_REFUSAL_{refuse},',
                f'    .is_query = {str(e.query).lower()},',
                f'    .stub = sdg_stub_{e.name},']
        if e.is_armed():
            out.append(f'    .probe = (void *)probe_{e.name},')
        if e.is_touching():
            out.append(f'    .whole = (void *)whole_{e.name},')
        if e.is_noted():
            out.append(f'    .shard = (void *)shard_{e.name},')
        if e.is_launch():
            out.append(f'    .kernel = (void *)kernel_{e.name},')
        if e.space:
            out.append('    .space = true,')
        if e.vector_op():
            out.append(f'    .vector = vector_{e.name},')
        if e.leaves():
            out.append(f'    .writes = writes_{e.name},')
        if e.gives_value():
            out.append(f'    .vector_call = vector_call_{e.name},')
        if e.kind in ('allocate', 'free'):
            out.append('    .memory = true,')
        if e.is_product():
            out.append(f'    .product = product_{e.name},')
        args = f'struct sdg_args_{e.name}'

        def offset(name):
            return (f'offsetof({args}, {name})' if name
                    else 'SDG_ENTRY_NOWHERE')
        if e.has_args():
            for member, kind in (('handle', 'handle'), ('op', 'opdesc'),
                                 ('stream', 'stream')):
                found = e.of_kind(kind)
                out.append(f'    .{member} = '
                           f'{offset(found[0].name if found else None)},')
            out += memory_table(e, offset)
        if e.is_captured():
            rows = operand_rows(e)
            updated = [p.name for p in e.of_kind('inout')]
            out.append(f'    .operands = {len(rows)},')
            out.append('    .operand = {')
            for role, kind, descriptor, data, written in rows:
                out.append(
                    f'      {{SDG_ROLE_{role}, SDG_OPERAND_{kind.upper()}, '
                    f'{str(written).lower()}, '
                    f'{str(data in updated).lower()}, {offset(descriptor)}, '
                    f'{offset(data)}}},')
            out.append('    },')
        out.append('  },')
    out += ['};', '', 'const char *const sdg_entry_name[SDG_ENTRY_COUNT] = {']
    out += [f'  [SDG_ENTRY_{e.name}] = "{e.name}",' for e in entries]
    return '\n'.join(out + ['};', ''])


def stubs_s(entries):
    out = [HEAD_C, '#include "interpose/arch.inc"', '']
    out += [f'SDG_STUB {e.name}, {i}' for i, e in enumerate(entries)]
    return '\n'.join(out + ['', 'SDG_END', ''])


def version_map(entries):
    # Anonymous: a version node would be bypassed by references that carry
    # the vendor's.
    names = [e.name for e in entries] + ['dlsym', 'dlvsym', 'sundog_*']
    return '{\n  global:\n' + ''.join(
        f'    {n};\n' for n in names) + '  local: *;\n};\n'


def names_inc(entries):
    return ''.join(f'"{e.name}",\n' for e in entries)


def main():
    writers = {'args.h': args_h, 'probes.c': probes_c, 'stubs.S': stubs_s,
               'map': version_map, 'names': names_inc, 'invoke.c': invoke_c,
               'called.def': called_def}
    if len(sys.argv) != 7 or sys.argv[1] not in writers:
        sys.exit(__doc__)
    read_families(sys.argv[4])
    read_arguments(sys.argv[5])
    entries = read(sys.argv[2]) + read_prototypes(sys.argv[3])
    text = writers[sys.argv[1]](entries)
    with open(sys.argv[-1], 'w') as out:
        out.write(text)


if __name__ == '__main__':
    main()
