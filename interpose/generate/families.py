# SPDX-License-Identifier: Apache-2.0
"""The words of src/call/families.def and rules/vendor/arguments.def, which
entries.def uses."""
import re

# Of families.def: flags by a family's word, and by a role's name.
FAMILIES, ROLES = {}, {}
# Of arguments.def: the kind of C type by an argument's name.
ARGUMENTS = {}


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

