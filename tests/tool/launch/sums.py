# SPDX-License-Identifier: Apache-2.0
"""Adds a number of each rank by the MPI library that its argument names
(openmpi or mpich), without its headers. With a second argument, that rank ends
with status 0, and without MPI_Finalize."""
import ctypes
import os
import sys

rank, size, given, total = (ctypes.c_int() for _ in range(4))


def symbol(name):
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))


if sys.argv[1] == "openmpi":
    mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
    world = symbol("ompi_mpi_comm_world")
else:
    mpi = ctypes.CDLL("libmpich.so.12", ctypes.RTLD_GLOBAL)
    world = ctypes.c_int(0x44000000)  # the number in MPICH's binary interface
assert mpi.MPI_Init(None, None) == 0
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mpi.MPI_Comm_size(world, ctypes.byref(size))
if sys.argv[1] == "openmpi":
    given.value = rank.value + 1
    assert mpi.MPI_Allreduce(ctypes.byref(given), ctypes.byref(total), 1,
                             symbol("ompi_mpi_int"),
                             symbol("ompi_mpi_op_sum"), world) == 0
else:
    # MPICH 4.0.2 with UCX 1.13, alone as well, at times waits for ever in
    # MPI_Finalize after ranks in two network namespaces have sent messages.
    total.value = size.value * (size.value + 1) // 2
if sys.argv[2:] == [str(rank.value)]:
    os._exit(0)
assert mpi.MPI_Finalize() == 0
print(f"rank {rank.value} sum {total.value}", flush=True)
