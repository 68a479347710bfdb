#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks one work-alike: it exports every name of the real library at the
vendor's version node, and nothing that does not return a status is a refusing
stub. exports.py LIBRARY NAMES NODE STUBS STATUS-TYPE HEADER... -- COMPILER..."""
import re
import subprocess
import sys


def exported(library):
    listing = subprocess.run(['nm', '-D', '--defined-only', library],
                             check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in listing.splitlines()]
    return {row[2] for row in rows if row[1] in 'TDBRWV'}


def declarations(headers, compiler):
    """name -> return type of the functions that the headers declare."""
    source = ''.join('#include <%s>\n' % header for header in headers)
    text = subprocess.run(compiler + ['-E', '-P', '-x', 'c', '-'],
                          input=source, check=True, capture_output=True,
                          text=True).stdout
    text = re.sub(r'__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)', ' ', text)
    found = {}
    for statement in re.split(r'[;{}]', text):
        match = re.match(r'\s*([\w\s*]*?[\s*])(\w+)\s*\(', statement)
        if match and not re.search(r'\b(typedef|return)\b', match.group(1)):
            kind = re.sub(r'\b(extern|enum)\b', ' ', match.group(1))
            found[match.group(2)] = ' '.join(kind.split())
    return found


def main():
    split = sys.argv.index('--')
    library, names, node, stubs, status = sys.argv[1:6]
    headers, compiler = sys.argv[6:split], sys.argv[split + 1:]
    have = exported(library)
    with open(names, encoding='ascii') as file:
        plain = file.read().split()
    wanted = [n + '@@' + node if node else n for n in plain]
    problems = ['%s is not exported' % n for n in wanted if n not in have]
    problems += ['%s is exported, but not by the real library' % n
                 for n in sorted(have - set(wanted))
                 if not n.endswith('@@sundog_host')]
    with open(stubs, encoding='ascii') as file:
        refused = set(re.findall(r'^STUB\((\w+)\)', file.read(), re.M))
    kinds = declarations(headers, compiler)
    known = [n for n in refused if n in kinds]
    declared = sum(n in kinds for n in plain)
    if headers and declared < len(plain) / 8:
        problems.append('the headers declare %d of %d functions: they were not '
                        'understood' % (declared, len(plain)))
    problems += ['%s returns %s: it cannot be refused by a status' %
                 (n, kinds[n]) for n in sorted(known)
                 if kinds[n] not in (status, 'void')]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
