# SPDX-License-Identifier: Apache-2.0
"""Adds a number of each rank by Open MPI's library, without its headers."""
import ctypes

mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)


def symbol(name):
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))


world = symbol("ompi_mpi_comm_world")
rank, given, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
assert mpi.MPI_Init(None, None) == 0
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
given.value = rank.value + 1
assert mpi.MPI_Allreduce(ctypes.byref(given), ctypes.byref(total), 1,
                         symbol("ompi_mpi_int"), symbol("ompi_mpi_op_sum"),
                         world) == 0
assert mpi.MPI_Finalize() == 0
print(f"rank {rank.value} sum {total.value}", flush=True)
