#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completes a work-alike: given the names that the real library exports and
the archive of what is implemented, writes the version script and one refusing
function for every other name."""
import argparse
import subprocess
import sys


def implemented(nm, archive):
    """Global functions and data that the objects of the archive define."""
    listing = subprocess.run([nm, '-g', '--defined-only', archive],
                             check=True, capture_output=True, text=True).stdout
    rows = (line.split() for line in listing.splitlines())
    return {row[2] for row in rows if len(row) == 3 and row[1] in 'TDBRWV'}


def version_script(node, names, extra_node, extra):
    lines = [node + ' {' if node else '{', '  global:']
    lines += ['    %s;' % name for name in names]
    if extra and not node:
        lines += ['    %s;' % name for name in extra]
    lines += ['  local: *;', '};']
    if extra and node:
        lines += [extra_node + ' {', '  global:']
        lines += ['    %s;' % name for name in extra]
        lines += ['};']
    return '\n'.join(lines) + '\n'


def stub_source(names, status, through):
    lines = ['#include "src/host/exports/unsupported.h"']
    if through:
        lines += ['int %s(int status);' % through]
    # long: the whole register is the status, whatever type the caller expects.
    lines += ['#define STUB(name) \\',
              '  long name(void); \\',
              '  long name(void) { \\',
              '    static _Atomic int said; \\',
              '    host_unsupported(#name, &said); \\',
              '    return %s(%d); \\' % (through, status),
              '  }']
    lines += ['STUB(%s)' % name for name in names]
    # ISO C wants one declaration even where everything is implemented.
    lines += ['typedef int host_stubs_end;']
    return '\n'.join(lines) + '\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--nm', default='nm')
    parser.add_argument('--names', required=True)
    parser.add_argument('--archive', required=True)
    parser.add_argument('--status', type=int, required=True)
    parser.add_argument('--through', default='',
                        help='a function that is given, and returns, status')
    parser.add_argument('--node', default='', help='version node of the names')
    parser.add_argument('--extra-node', default='sundog_host')
    parser.add_argument('--extra', default='', help='more exports, by commas')
    parser.add_argument('--map', required=True)
    parser.add_argument('--source', required=True)
    args = parser.parse_args()

    with open(args.names, encoding='ascii') as file:
        names = file.read().split()
    extra = [name for name in args.extra.split(',') if name]
    have = implemented(args.nm, args.archive)
    missing = sorted(set(extra) - have)
    if missing:
        sys.exit('%s does not define %s' % (args.archive, ', '.join(missing)))
    with open(args.map, 'w', encoding='ascii') as file:
        file.write(version_script(args.node, names, args.extra_node, extra))
    with open(args.source, 'w', encoding='ascii') as file:
        file.write(stub_source([n for n in names if n not in have],
                               args.status, args.through))


if __name__ == '__main__':
    main()
