#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays random calls of the backend API to NVIDIA's library and to the host
device, and compares what they return, line by line. Skipped where NVIDIA's
library is missing.

usage: compare.py SCRIPT REAL OURS ATTRIBUTES SEED COUNT RECORDED...
  SCRIPT      the program of script.c
  REAL, OURS  libraries
  ATTRIBUTES  attributes.def
  RECORDED    files whose cases are changed"""
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import draw  # noqa: E402


def play(script, library, cases, folder):
    """Lines with results of each case; a case that ended the program ends with
    'crash'."""
    # Both libraries load others by their names.
    place = dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(library))
    results, first = [], 0
    while first < len(cases):
        path = os.path.join(folder, 'calls')
        with open(path, 'w', encoding='utf-8') as file:
            for case in cases[first:]:
                file.write('case\n' + ''.join(line + '\n' for line in case))
        ran = subprocess.run([script, '--record', library, path], text=True,
                             capture_output=True, check=False, env=place)
        part = []
        for line in ran.stdout.splitlines():
            if line == 'case':
                part.append([])
            else:
                part[-1].append(line)
        if ran.returncode not in (0, 1):
            part[-1].append('crash')
        results += part
        first += len(part)
    return results


# ---- what differs by intent --------------------------------------------------

# Attributes without a default: NVIDIA's library reads memory that nobody has
# written, where the program has not set them.
UNSET = ('REDUCTION_COMP_TYPE REDUCTION_OPERATOR MATMUL_COMP_TYPE '
         'KNOB_CHOICE_KNOB_TYPE OPERATION_SIGNAL_MODE LAYOUT_INFO_TENSOR_UID '
         'LAYOUT_INFO_TYPES').split()
# Numbers that it reads from elsewhere, or as the bits of another type.
MISREAD = ('OPERATION_RESAMPLE_FWD_ALPHA OPERATION_RESAMPLE_FWD_BETA '
           'OPERATION_RESAMPLE_BWD_ALPHA OPERATION_RESAMPLE_BWD_BETA '
           'MATMUL_PADDING_VALUE RESAMPLE_PADDING_MODE '
           'OPERATION_RNG_SEED').split()
WINDOWS = re.compile('RESAMPLE_(WINDOW_DIMS|STRIDES|.*_PADDINGS)$')
CONV_SCALES = re.compile('OPERATION_CONVOLUTION_.*_(ALPHA|BETA)$')


class Moment:
    """A case as far as the call that is answered differently."""
    def __init__(self, before, call):
        self.word = call.split()
        self.verb, self.name = self.word[0], self.word[1]
        self.attribute = self.word[2] if len(self.word) > 2 else ''
        self.sets, self.kinds, done = {}, {}, set()
        self.early = False  # something was set before it was finalized
        ids = [line.split()[2] for line in before if line[:7] == 'tensor ']
        ids += [line.split()[5] for line in before
                if ' TENSOR_UNIQUE_ID INT64 1 ' in line]
        self.shares = len(set(ids)) < len(ids)
        for line in before:
            word = line.split()
            if word[0] == 'new':
                self.kinds[word[1]] = word[2]
                self.sets[word[1]] = {}
            elif word[0] == 'set' and line.endswith('-> 0'):
                self.sets.setdefault(word[1], {})[word[2]] = word[3:-2]
                self.early |= word[3] == 'BACKEND_DESCRIPTOR' and any(
                    self.kinds.get(name) in ('RESAMPLE', 'POINTWISE') and
                    name not in done for name in word[5:-2])
            elif word[0] == 'destroy':
                self.kinds.pop(word[1], None)
            elif word[0] == 'finalize' and line.endswith('-> 0'):
                done.add(word[1])
        self.kind = self.kinds.get(self.name, 'TENSOR')
        self.has = self.sets.get(self.name, {})

    def lacks_settings(self):
        how = self.has.get(self.kind + '_DESC', [''])[-1]
        given = [self.sets.get(how, {}).get('RESAMPLE_' + name, ['-'])
                 for name in ('SPATIAL_DIMS', 'WINDOW_DIMS', 'STRIDES',
                              'PRE_PADDINGS', 'POST_PADDINGS')]
        return how not in self.kinds or '0' in given[1][2:] or any(
            value.startswith('-') for values in given for value in values)

    def unset(self, kind, attribute):
        return any(self.kinds.get(name) == kind and
                   attribute not in self.sets.get(name, {})
                   for name in self.word[1:])


INTENDED = (
    ('NVIDIA\'s library crashes',
     lambda at, theirs, ours: theirs == 'crash' and ours != 'crash'),
    ('NVIDIA\'s library reads memory that was not written',
     lambda at, theirs, ours:
     at.attribute in UNSET and at.attribute not in at.has or
     at.unset('REDUCTION', 'REDUCTION_OPERATOR') or
     at.unset('KNOB_CHOICE', 'KNOB_CHOICE_KNOB_TYPE') or
     at.unset('OPERATION_BN_FINALIZE_STATISTICS',
              'OPERATION_BN_FINALIZE_STATS_MODE') or
     at.unset('OPERATION_NORM_FORWARD', 'OPERATION_NORM_FWD_MODE') or
     at.unset('OPERATION_NORM_FORWARD', 'OPERATION_NORM_FWD_PHASE') or
     at.unset('OPERATION_NORM_BACKWARD', 'OPERATION_NORM_BWD_MODE')),
    ('NVIDIA\'s library reads the number as another type',
     lambda at, theirs, ours: at.verb == 'get' and (
         at.attribute in MISREAD or WINDOWS.match(at.attribute) or
         CONV_SCALES.match(at.attribute))),
    ('NVIDIA\'s library takes a negative number of dimensions for a count',
     lambda at, theirs, ours: at.kind == 'RESAMPLE' and at.verb == 'get' and
     at.has.get('RESAMPLE_SPATIAL_DIMS', ['-1'])[-1].startswith('-')),
    ('settings that were not finalized count as they are in the end',
     lambda at, theirs, ours: at.verb == 'finalize' and
     at.kind.startswith('OPERATION_RESAMPLE_') and at.early),
    ('NVIDIA\'s library adds nothing up along an axis that no tensor has',
     lambda at, theirs, ours: at.verb == 'finalize' and
     at.kind == 'OPERATION_CONCAT' and
     int(at.has.get('OPERATION_CONCAT_AXIS', ['0'])[-1]) > 7),
    ('NVIDIA\'s library takes some numbers of block sizes',
     lambda at, theirs, ours: at.attribute.endswith('_BLOCK_SIZE') and
     at.word[4] != '1'),
    ('the list of a ragged tensor has one tensor here',
     lambda at, theirs, ours: at.attribute == 'TENSOR_RAGGED_OFFSET_DESC' and
     at.word[4] != '1'),
    ('engines are other ones, and there is always a device',
     lambda at, theirs, ours:
     at.attribute == 'OPERATIONGRAPH_ENGINE_GLOBAL_COUNT' or at.verb == 'finalize' and
     at.kind in ('ENGINE', 'ENGINECFG', 'ENGINEHEUR', 'EXECUTION_PLAN',
                 'DEVICEPROP')),
    ('tensors of one id have one type and layout here',
     lambda at, theirs, ours: at.kind == 'OPERATIONGRAPH' and
     ours == 'finalize %s -> 2000' % at.name and at.shares),
    ('a resample operation without its gradients is refused in its graph',
     lambda at, theirs, ours: at.kind == 'OPERATION_RESAMPLE_BWD' and
     ours.endswith('-> 0') and
     'OPERATION_RESAMPLE_BWD_DXDESC' not in at.has),
    ('an index has the extents of the windows here',
     lambda at, theirs, ours: at.kind == 'OPERATION_RESAMPLE_BWD' and
     ours.endswith('-> 2000') and
     'OPERATION_RESAMPLE_BWD_IDXDESC' in at.has),
    ('tensors that are put together have one number of dimensions here',
     lambda at, theirs, ours: at.kind == 'OPERATION_CONCAT' and
     ours.endswith('-> 2000')),
    ('settings that were not finalized count as they are in the end',
     lambda at, theirs, ours: at.kind == 'OPERATION_POINTWISE' and
     at.early),
    ('a seed is what was set last here',
     lambda at, theirs, ours: at.kind == 'OPERATION_RNG' and
     at.has.get('OPERATION_RNG_SEED', [''])[0] == 'INT64'),
    ('a resample operation without settings, or with negative ones, is refused '
     'before its graph',
     lambda at, theirs, ours: at.verb == 'finalize' and
     at.kind.startswith('OPERATION_RESAMPLE_') and ours.endswith('-> 2000') and
     at.lacks_settings()),
)


def intent(before, theirs, ours):
    call = (ours if theirs == 'crash' else theirs).split(' -> ')[0]
    moment = Moment(before, call)
    for reason, holds in INTENDED:
        if holds(moment, theirs, ours):
            return reason
    return None


def first_difference(real, ours):
    for i in range(max(len(real), len(ours))):
        a = real[i] if i < len(real) else 'nothing'
        b = ours[i] if i < len(ours) else 'nothing'
        if a != b:
            return i, a, b
    return None


def main():
    script, real, ours, table, seed, count = sys.argv[1:7]
    if not os.path.exists(real):
        print('no %s: skipped' % real)
        return 77
    drawer = draw.Drawer(int(seed), draw.attributes(table),
                         draw.cases(sys.argv[7:]))
    cases = [drawer.draw() for _ in range(int(count))]
    with tempfile.TemporaryDirectory() as folder:
        said = play(script, real, cases, folder)
        answered = play(script, ours, cases, folder)
    wrong, intended = 0, {}
    for a, b in zip(said, answered):
        found = first_difference(a, b)
        if not found:
            continue
        at, theirs, mine = found
        reason = intent(a[:at], theirs, mine)
        if reason:
            intended[reason] = intended.get(reason, 0) + 1
            continue
        wrong += 1
        print('case\n' + '\n'.join(a[:at]))
        print('NVIDIA: %s\nhost:   %s\n' % (theirs, mine))
    for reason, times in intended.items():
        print('%d cases: %s' % (times, reason))
    print('%d cases, %d calls, %d cases differ' %
          (len(cases), sum(map(len, said)), wrong))
    return 1 if wrong or not cases else 0


if __name__ == '__main__':
    sys.exit(main())
