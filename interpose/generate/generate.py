#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Expands interpose/entries.def to everything that depends on the list of
intercepted functions.

usage: generate.py OUTPUT entries.def cublas.def families.def arguments.def FILE
OUTPUT says what FILE becomes:
  args.h     enum of the entries, a struct of arguments for each captured one
  called.def the entries that rules/ calls
  invoke.c   the ops and queries among these, called with a struct of arguments;
             where each op has which argument
  probes.c   typed probes, checks against the vendors' headers, entry table
  stubs.S    exported stubs and their slots
  map        version script
  names      their names, as C's texts

families.py, entry.py, table.py and cublas.py read the tables; each other file
here generates what its first line says.
"""
import sys

sys.dont_write_bytecode = True  # the source folder stays as it is

from arguments import args_h, called_def, invoke_c
from cublas import read_prototypes
from families import read_arguments, read_families
from probes import probes_c
from stubs import names_inc, stubs_s, version_map
from table import read

WRITERS = {'args.h': args_h, 'called.def': called_def, 'invoke.c': invoke_c,
           'probes.c': probes_c, 'stubs.S': stubs_s, 'map': version_map,
           'names': names_inc}


def read_all(entries_def, cublas_def, families_def, arguments_def):
    """Every entry, in the order of the tables."""
    read_families(families_def)
    read_arguments(arguments_def)
    return read(entries_def) + read_prototypes(cublas_def)


def main():
    if len(sys.argv) != 7 or sys.argv[1] not in WRITERS:
        sys.exit(__doc__)
    text = WRITERS[sys.argv[1]](read_all(*sys.argv[2:6]))
    with open(sys.argv[-1], 'w', encoding='ascii') as out:
        out.write(text)


if __name__ == '__main__':
    main()
