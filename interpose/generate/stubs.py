# SPDX-License-Identifier: Apache-2.0
"""Generates what is exported: the stubs (stubs.S), the version script (map) and
the names as C's texts (names)."""
from snippets import HEAD_C


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
