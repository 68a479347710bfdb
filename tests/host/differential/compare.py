#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a probe over NVIDIA's library and over the work-alike, and compares
every line. compare.py PROBE REAL OURS CASES BAD_PARAMETER

A call that crashes NVIDIA's library is refused with BAD_PARAMETER by ours.
EXPECTED lists the other differences that are meant."""
import os
import re
import subprocess
import sys
import tempfile

# Pattern of the line of NVIDIA's library, of ours, and why.
EXPECTED = [
    (r'^cudnnSet(RNN|RNNData|SeqData|Attn)Descriptor\w* .*: [23]000',
     r': [24]000', 'of several arguments that do not fit each other, either '
     'may be named first'),
    (r'^cudnnInitTransformDest .*: 3000', r': 2000', 'the same'),
    (r'^cudnnSetTensorNdDescriptorEx .* crash', r': 3000',
     'reads more numbers than there are before it looks at how many are legal'),
    (r'^cudnnSetSpatialTransformerNdDescriptor ', r': (2000|nothing)',
     'takes any number of dimensions and writes past its object'),
    (r'^cudnnGetReduction(Indices|Workspace)Size ', r': refused',
     'looks neither at the handle nor at the shapes'),
    (r'^cublas[SDCZ]gemv\w* .*: 0', r': refused',
     'a product without elements is done before the handle is looked at'),
    (r'^ncclComm(Split|WindowRegister) .*: 1', r': 4',
     'looks for a driver first, which is not there'),
    (r'^cudaDriverGetVersion: 0 0', r': 0 \d+', 'there is no driver'),
]


def lines(probe, library, cases, folder):
    """What comes before the colon -> what follows it"""
    environment = dict(os.environ)
    environment['LD_LIBRARY_PATH'] = os.path.dirname(library)
    name = os.path.join(folder, 'output')
    with open(name, 'wb') as file:
        subprocess.run([probe, library, cases], env=environment, stdout=file,
                       check=True)
    with open(name, encoding='ascii', errors='replace') as file:
        return dict(line.rstrip('\n').partition(':')[::2] for line in file)


def meant(key, real, ours, refused):
    if real == ours:
        return True
    if re.search(r' crash\b', real):
        head = real[:real.index(' crash')]
        rest = re.sub(r' of -?\d+$', '', ours)
        if rest in (head + ' ' + refused, head + ' refused'):
            return True
    return any(re.search(a, key + ':' + real) and re.search(b, key + ':' + ours)
               for a, b, _ in EXPECTED)


def main():
    probe, real, ours, cases, refused = sys.argv[1:6]
    real, ours = os.path.abspath(real), os.path.abspath(ours)
    if not os.path.exists(real):
        print('no ' + real)
        return 77
    with tempfile.TemporaryDirectory() as folder:
        theirs = lines(probe, real, cases, folder)
        mine = lines(probe, ours, cases, folder)
    wrong = [key for key in theirs
             if not meant(key, theirs[key], mine.get(key, ' nothing'), refused)]
    wrong += [key for key in mine if key not in theirs and
              not meant(key, ' nothing', mine[key], refused)]
    print('%d lines, %d of them differ' % (len(theirs), len(wrong)))
    for key in wrong[:int(os.environ.get('DIFFERENCES', '40'))]:
        print('NVIDIA %s:%s' % (key, theirs.get(key, ' nothing')[:300]))
        print('ours   %s:%s' % (key, mine.get(key, ' nothing')[:300]))
    return 1 if wrong or len(theirs) < 20 else 0


if __name__ == '__main__':
    sys.exit(main())
