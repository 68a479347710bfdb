# SPDX-License-Identifier: Apache-2.0
"""The families of ops that the equivalence tester knows."""
from families.attention import Attention
from families.conv import Convolution, Gradients, Step
from families.dropout import Dropout
from families.move import Redistribution
from families.neighborhood import Neighborhood
from families.network import Network
from families.matmul import Matmul
from families.norm import BatchNorm, ResponseNorm
from families.pointwise import Pointwise
from families.pool import Pooling
from families.reduce import Reduction, Softmax

FAMILIES = [Convolution(), Gradients(), Step(), Pooling(), Pointwise(), Dropout(), BatchNorm(),
            ResponseNorm(), Reduction(), Softmax(), Matmul(), Neighborhood(),
            Network(), Redistribution(), Attention()]


def family_of(case):
    return next(f for f in FAMILIES if case["op"] in f.ops)
