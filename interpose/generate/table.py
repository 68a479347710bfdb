# SPDX-License-Identifier: Apache-2.0
"""Reads entries.def."""
import re
import sys

from entry import (NAMED_CLASSES, SIZED_CLASSES, Entry, Parameter,
                   operand_rows)
from families import ARGUMENTS, FAMILIES, ROLES

OTHER_KINDS = ('create set destroy opaque pass text copy sync allocate free '
               'memory unseen reset graph node register shadow execute').split()
FLAGS = ('query ptsz ptds everything extern called space before '
         'answered changed hosted').split()
PLAIN_CLASSES = ('handle seqdata opdesc opdesc2 created changed destroyed '
                 'device scalar workspace workspace_bytes reserve '
                 'reserve_bytes host lengths value said everything freed '
                 'stream').split()
# What the first parameter of such an entry is.
SUBJECTS = {'create': 'created', 'set': 'changed', 'destroy': 'destroyed'}
LIBRARIES = 'cudnn cudart cublas cublasLt nccl'.split()
OPERANDS_MAX = 12  # SDG_OPERANDS_MAX of src/call/call.h
ACCESSES_MAX = 32  # SDG_ACCESSES_MAX of src/call/memory_access.h


def rows(path):
    """The lines of entries.def with their numbers, without comments; what
    stands in parentheses is one line."""
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


class Reader:
    """The entries of a file, as far as it was read."""

    def __init__(self, path):
        self.path, self.number = path, 0
        self.entries, self.seen = [], set()
        self.group = []   # entries that the next parameters belong to
        self.head = None  # what the entries of a list have in common

    def fault(self, text):
        sys.exit(f'{self.path}:{self.number}: {text}')

    def begin(self, name, library, kind, flags, ctype):
        """An entry, and those for per-thread default streams."""
        names = [name] + [f'{name}_{f}' for f in flags if f[:2] == 'pt']
        if self.seen & set(names):
            self.fault(f'{name} is in the table already')
        self.seen.update(names)
        self.group = [Entry(n, name, library, kind, flags, ctype)
                      for n in names]
        self.entries.extend(self.group)

    def header(self, line):
        """`entry NAME LIBRARY KIND ... -> TYPE`, or `entries` without NAME."""
        left, arrow, ctype = line.partition(' -> ')
        word, *words = left.split()
        names = words[:1] if word == 'entry' else []
        words = words[len(names):]
        if not arrow or len(words) < 2:
            self.fault('not "entry NAME LIBRARY KIND ... -> TYPE"')
        library, kind, *flags = words
        if library not in LIBRARIES:
            self.fault(f'unknown library {library}')
        if kind not in [*FAMILIES, *OTHER_KINDS]:
            self.fault(f'unknown kind {kind}')
        if set(flags) - set(FLAGS):
            self.fault(f'unknown flag in {flags}')
        if 'changed' in flags and kind != 'copy':
            self.fault('changed is of copies')
        if 'hosted' in flags and kind != 'allocate':
            self.fault('only an allocation is hosted')
        if {'before', 'answered'} & set(flags) and kind != 'shadow':
            self.fault('before and answered are of shadow entries')
        self.head = library, kind, flags, ctype
        for name in names:
            self.begin(name, *self.head)

    def add(self, parameter):
        for entry in self.group:
            entry.parameters.append(parameter)

    def listed(self, text):
        """`(TYPE PARAMETER, ...)`: the types tell the classes."""
        for ctype, name in map(declared, text.split(', ')):
            kind = class_of(ctype, self.head[1], not self.group[0].parameters)
            if not kind:
                self.fault(f'the type of {name} does not tell its class')
            self.add(Parameter(name, [kind], ctype))

    def parameter(self, line):
        """`PARAMETER CLASS [ARGUMENT] : TYPE`."""
        left, colon, ctype = line.strip().partition(' : ')
        name, *words = left.split()
        if not colon or not words or not self.group:
            self.fault('not "PARAMETER CLASS [ARGUMENT] : TYPE"')
        p = Parameter(name, words, ctype.strip())
        if p.is_operand():
            if p.argument not in ROLES:
                self.fault(f'unknown role {p.argument}')
        elif p.is_data():
            if len(p.words) > 1 and p.words[1] not in ROLES:
                self.fault(f'unknown role {p.words[1]}')
        elif p.kind in SIZED_CLASSES:
            if len(p.words) not in SIZED_CLASSES[p.kind]:
                self.fault(f'{p.kind} of {len(p.words)} sizes')
        elif p.kind not in PLAIN_CLASSES or (
                p.argument and p.kind not in NAMED_CLASSES + ['said']):
            self.fault(f'unknown class {" ".join(words)}')
        elif p.named() and ARGUMENTS.get(p.named()) != p.type_kind():
            self.fault(f'{name}: no SDG_{p.type_kind()}({p.named()})')
        self.add(p)

    def line(self, number, line):
        self.number = number
        listed = re.fullmatch(r'  (\w*)\((.*)\)', line)
        if line.split()[0] in ('entry', 'entries'):
            self.header(line)
        elif line.startswith('  writes '):
            for entry in self.group:
                entry.writes = line.removeprefix('  writes ').strip()
        elif listed and (listed[1] or self.group):
            if listed[1] and self.head:
                self.begin(listed[1], *self.head)
            if not self.group:
                self.fault('parameters of no entry')
            self.listed(listed[2])
        else:
            self.parameter(line)


def check(path, entry):
    names = [p.name for p in entry.parameters]
    for p in entry.parameters:
        if p.is_data() and p.argument not in names:
            sys.exit(f'{path}: {entry.name} has no descriptor {p.argument} '
                     f'of {p.name}')
    if len(operand_rows(entry)) > OPERANDS_MAX:
        sys.exit(f'{path}: {entry.name} has too many operands')
    if len(entry.accesses()) > ACCESSES_MAX:
        sys.exit(f'{path}: {entry.name} has too many pointers')


def read(path):
    """The entries of entries.def. Read the families and arguments first."""
    reader = Reader(path)
    for number, line in rows(path):
        reader.line(number, line)
    for entry in reader.entries:
        check(path, entry)
    return reader.entries
