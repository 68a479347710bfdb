# SPDX-License-Identifier: Apache-2.0
"""Random calls of the backend API: cases of the recorded files (script.c), each
changed in a few places."""
import random
import re

# By their numbers, as in script.c.
TYPES = ('HANDLE DATA_TYPE BOOLEAN INT64 FLOAT DOUBLE VOID_PTR '
         'CONVOLUTION_MODE HEUR_MODE KNOB_TYPE NAN_PROPOGATION NUMERICAL_NOTE LAYOUT_TYPE '
         'ATTRIB_NAME POINTWISE_MODE BACKEND_DESCRIPTOR GENSTATS_MODE '
         'BN_FINALIZE_STATS_MODE REDUCTION_OPERATOR_TYPE BEHAVIOR_NOTE '
         'TENSOR_REORDERING_MODE RESAMPLE_MODE PADDING_MODE INT32 CHAR '
         'SIGNAL_MODE FRACTION NORM_MODE NORM_FWD_PHASE RNG_DISTRIBUTION '
         'MOE_GROUPED_MATMUL_MODE').split()
SETS = {'DESC': ['BACKEND_DESCRIPTOR'], 'REAL': ['FLOAT', 'DOUBLE'],
        'SCALE': ['FLOAT', 'DOUBLE', 'INT32'], 'SPAN': ['INT64', 'FRACTION'],
        'NUMBER': ['FLOAT', 'DOUBLE', 'INT32', 'INT64'], 'ANY': ['CHAR'],
        'SEED': ['INT64', 'BACKEND_DESCRIPTOR']}
LIKELY = ['INT64', 'INT32', 'FLOAT', 'DOUBLE', 'BOOLEAN', 'DATA_TYPE',
          'BACKEND_DESCRIPTOR', 'FRACTION', 'CHAR', 'VOID_PTR']


class Attribute:
    def __init__(self, row):
        (self.kind, self.name, types, _, self.count, self.child,
         self.access) = row
        self.types = SETS.get(types, [types])


def attributes(path):
    """Each kind's attributes, of attributes.def."""
    with open(path, encoding='utf-8') as file:
        text = file.read()
    found = {}
    for row in re.findall(r'^ROW\(([^)]*)\)', text, re.M):
        attribute = Attribute([word.strip() for word in row.split(',')])
        found.setdefault(attribute.kind, []).append(attribute)
    return found


def cases(paths):
    """The recorded cases: lists of lines without results."""
    found = []
    for path in paths:
        with open(path, encoding='utf-8') as file:
            for line in file:
                call = line.split(' -> ')[0].strip()
                if call.startswith('case'):
                    found.append([])
                elif call and not call.startswith('#'):
                    found[-1].append(call)
    return found


class Drawer:
    def __init__(self, seed, table, recorded):
        self.random = random.Random(seed)
        self.table = table
        self.rows = {row.name: row for rows in table.values() for row in rows}
        self.recorded = recorded
        self.wholes = [case for case in recorded if len(case) > 3]

    def one_in(self, n):
        return self.random.randrange(n) == 0

    # ---- what a case has -----------------------------------------------------

    @staticmethod
    def kinds_of(case):
        """The kind of each name."""
        found = {}
        for line in case:
            word = line.split()
            if word[0] == 'new':
                found[word[1]] = word[2]
            elif word[0] == 'tensor':
                found[word[1]] = 'TENSOR'
        return found

    def value(self, kind):
        draw = self.random
        if kind == 'BOOLEAN':
            return str(draw.randrange(2))
        if kind in ('FLOAT', 'DOUBLE'):
            return draw.choice(['0', '1', '-1', '0.5', '2', '1e-5', '1e30'])
        if kind == 'FRACTION':
            return '%d/%d' % (draw.choice([0, 1, 1, 2, 3, 5]),
                              draw.choice([1, 1, 1, 2, 3]))
        if kind == 'INT64':
            return str(draw.choice([0, 0, 1, 1, 1, 2, 2, 3, 4, 5, 8, 16, 32, 64,
                                    -1, -1, -2, 7, 9, 127, 2**31, 2**40,
                                    2**63 - 1, -2**63]))
        if kind == 'INT32':
            return str(draw.choice([0, 1, 2, 8, 16, 32, -1, 2**31 - 1]))
        if kind == 'POINTWISE_MODE':
            return str(draw.choice([0, 1, 2, 3, 4, 5, 6, 7, 8] +
                                   list(range(100, 124)) +
                                   list(range(200, 208)) +
                                   list(range(300, 312)) +
                                   [400, 401, 402, 500, 501, 502, 600, -1]))
        if kind == 'DATA_TYPE':
            return str(draw.choice(list(range(-1, 20)) + [0, 2, 9] * 4))
        return str(draw.choice([0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 20, -1]))

    def child(self, case, row):
        kinds = self.kinds_of(case)
        same = [name for name in kinds if kinds[name] == row.child]
        if self.one_in(24):
            return 'null'
        if same and not self.one_in(5):
            return self.random.choice(same)
        return self.random.choice(list(kinds) or ['null'])

    def set_line(self, case, name, row):
        kind = self.random.choice(row.types)
        if self.one_in(8):
            kind = self.random.choice(LIKELY if self.one_in(2) else TYPES)
        count = (1 if row.count != 'LIST' else
                 self.random.choice([1, 2, 2, 3, 4, 4, 5]))
        return self.line_of(name, row, kind, count, [
            self.child(case, row) if kind == 'BACKEND_DESCRIPTOR'
            else self.value(kind) for _ in range(count)])

    @staticmethod
    def line_of(name, row, kind, count, values):
        return ' '.join(['set', name, row.name, kind, str(count)] + values)

    def get_line(self, name, row):
        if row.types == ['BACKEND_DESCRIPTOR']:
            return 'get %s %s BACKEND_DESCRIPTOR 0' % (name, row.name)
        kind = self.random.choice(row.types)
        if self.one_in(8):
            kind = self.random.choice(LIKELY)
            if kind == 'BACKEND_DESCRIPTOR':
                kind = 'INT64'
        count = self.random.choice([1, 1, 1, 0, 2, 4, 5, 8, 9, 64, -1])
        return 'get %s %s %s %d' % (name, row.name, kind, count)

    def some_row(self, kind):
        if self.one_in(12) or kind not in self.table:
            return self.random.choice(list(self.rows.values()))
        return self.random.choice(self.table[kind])

    # ---- changes -------------------------------------------------------------

    def change_set(self, case, at):
        word = case[at].split()
        name, kind, count = word[1], word[3], word[4]
        row, values = self.rows.get(word[2]), word[5:]
        if not row:
            return
        way = self.random.randrange(8)
        if way == 0:
            kind = self.random.choice(LIKELY if self.one_in(2) else TYPES)
            if (kind == 'BACKEND_DESCRIPTOR') != (word[3] == kind):
                values = [self.child(case, row) if kind == 'BACKEND_DESCRIPTOR'
                          else self.value(kind) for _ in values]
        elif way == 1:
            count = str(self.random.choice(
                [0, -1, 1, 2, 3, len(values) + 1, len(values) - 1, 8, 9, 64]))
            while len(values) < int(count):
                values.append(values[-1] if values else '0')
        elif way == 2:
            values = ['nowhere']
        elif kind == 'BACKEND_DESCRIPTOR' and values:
            values[self.random.randrange(len(values))] = self.child(case, row)
        elif values:
            for _ in range(1 + self.random.randrange(2)):
                values[self.random.randrange(len(values))] = self.value(kind)
        case[at] = self.line_of(name, row, kind, count, values)

    def change_tensor(self, case, at):
        """tensor NAME UID TYPE VIRTUAL BY-VALUE EXTENT..."""
        word = case[at].split()
        way = self.random.randrange(6)
        if way == 0:
            word[3] = self.value('DATA_TYPE')
        elif way == 1:
            spot = self.random.choice([4, 5])
            word[spot] = str(1 - int(word[spot]))
        elif way == 2 and len(word) > 7:
            del word[self.random.randrange(6, len(word))]
        elif way == 3 and len(word) < 13:
            word.insert(self.random.randrange(6, len(word) + 1),
                        self.random.choice('1248'))
        elif way == 4:
            word[2] = self.random.choice(['1', '2', '3', '-1', '0'])
        elif len(word) > 6:
            word[self.random.randrange(6, len(word))] = self.random.choice(
                ['0', '1', '1', '2', '3', '4', '6', '7', '8', '9', '16'])
        case[at] = ' '.join(word)

    def insert(self, case):
        kinds = self.kinds_of(case)
        if not kinds:
            return
        name = self.random.choice(list(kinds))
        made = next(i for i, line in enumerate(case)
                    if line.split()[1] == name)
        at = self.random.randrange(made + 1, len(case) + 1)
        way = self.random.randrange(10)
        if way == 0:
            line = 'finalize ' + name
        elif way == 1:
            line = 'destroy ' + name
        elif way < 6:
            line = self.get_line(name, self.some_row(kinds[name]))
        else:
            line = self.set_line(case, name, self.some_row(kinds[name]))
        case.insert(at, line)

    def change(self, case):
        if not case or self.one_in(3):
            self.insert(case)
            return
        at = self.random.randrange(len(case))
        verb = case[at].split()[0]
        way = self.random.randrange(6)
        if way == 0:
            del case[at]
        elif way == 1:
            case.insert(self.random.randrange(at, len(case)) + 1, case[at])
        elif way == 2 and at + 1 < len(case):
            to = self.random.randrange(len(case))
            case.insert(to, case.pop(at))
        elif verb == 'set':
            self.change_set(case, at)
        elif verb == 'tensor':
            self.change_tensor(case, at)
        elif verb == 'new' and self.one_in(8):
            word = case[at].split()
            word[2] = self.random.choice(list(self.table))
            case[at] = ' '.join(word)

    def shuffle(self, case):
        """Sets of one descriptor, between others of it, in another order."""
        start = 0
        while start < len(case):
            end = start
            while end < len(case) and case[end].startswith('set '):
                end += 1
            part = case[start:end]
            self.random.shuffle(part)
            case[start:end] = part
            start = end + 1

    def read_back(self, case):
        kinds = self.kinds_of(case)
        for name, kind in kinds.items():
            for row in self.table.get(kind, []):
                if self.one_in(3):
                    case.append(self.get_line(name, row))

    def draw(self):
        case = list(self.random.choice(self.wholes))
        if self.one_in(3):
            self.shuffle(case)
        for _ in range(self.random.choice([1, 1, 2, 2, 3, 4, 8])):
            self.change(case)
        if self.one_in(2):
            self.read_back(case)
        return [line for line in case if not self.unsaid(case, line)]

    # ---- what is not played --------------------------------------------------

    def unsaid(self, case, line):
        """Handles and text, which a script cannot give; and descriptors of
        another kind, which NVIDIA's library takes for the right one: it
        crashes or reads what it finds."""
        word = line.split()
        if word[0] not in ('set', 'get') or len(word) < 4:
            return False
        row = self.rows.get(word[2])
        if word[3] == 'HANDLE' or (row and row.types in (['HANDLE'], ['CHAR'])):
            return True
        if word[0] == 'get' or word[3] != 'BACKEND_DESCRIPTOR' or not row:
            return False
        made = [other.split() for other in case]
        return any(not self.suits(other[2] if other[0] == 'new' else 'TENSOR',
                                  row.child)
                   for other in made
                   if other[0] in ('new', 'tensor') and other[1] in word[5:])

    @staticmethod
    def suits(kind, child):
        if child == 'OPERATIONS':
            return kind.startswith('OPERATION_')
        return kind == child or child == 'NONE'
