# SPDX-License-Identifier: Apache-2.0
"""Pieces of C that several generated functions have."""
from entry import join

HEAD_C = '''/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from interpose/entries.def; do not edit. */
'''
# The address that the program called the entry from.
CALLER = '__builtin_return_address(0)'


def begins(prefix, e):
    """The first line of a function with the entry's prototype, and with
    whatever follows its arguments if a runtime may have one more."""
    more = ', void *more' if e.changed else ''
    return f'{join(e.ctype, f"{prefix}_{e.name}")}({e.declaration()}{more}) {{'


def passed(e):
    """The arguments of a function that has what begins() writes."""
    return e.arguments() + (', more' if e.changed else '')


def real(e, arguments=None):
    """A call of the real function."""
    typed = f'more_{e.prototype}' if e.changed else e.typed()
    return (f'REAL({e.name}, {typed})'
            f'({passed(e) if arguments is None else arguments})')


def fill_of(e):
    """Declares `all`, the entry's struct of arguments."""
    fill = ', '.join(f'.{p.name} = {p.name}' for p in e.parameters)
    return f'struct sdg_args_{e.name} all = {{{fill}}};'
