# SPDX-License-Identifier: Apache-2.0
"""The families of ops that the equivalence tester knows."""
from families.conv import Convolution
from families.pointwise import Pointwise
from families.pool import Pooling

FAMILIES = [Convolution(), Pooling(), Pointwise()]


def family_of(case):
    return next(f for f in FAMILIES if case["op"] in f.ops)
