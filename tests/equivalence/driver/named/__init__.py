# SPDX-License-Identifier: Apache-2.0
"""Named cases: cases that other systems get wrong, and corner cases of the
geometry.

Each is a name and a line as in cases.py; families complete the line, and have
named cases of their own.
"""
from families import FAMILIES
from named import apart, attention, neighborhoods, norms, products, windows

NAMED = [case for module in (windows, norms, neighborhoods, products, attention,
                             apart) for case in module.NAMED]
NAMED += [case for family in FAMILIES for case in family.named()]
