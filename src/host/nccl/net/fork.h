/* SPDX-License-Identifier: Apache-2.0 */
/* State that a forked child must not keep: descriptors whose closing tells
 * others that a process has died, and the ownership of a communicator. */
#ifndef SDG_SRC_HOST_NCCL_NET_FORK_H
#define SDG_SRC_HOST_NCCL_NET_FORK_H

/* Moves `fd` to a number that no program expects (a program that closed its
 * stdout would print into the socket). Every later child of fork closes it;
 * exec closes it by itself. Returns the new number; passes -1 through. Any
 * thread may call it. If memory is short the fd is closed and -1 returned. */
int host_fork_guard(int fd);

/* Closes a guarded fd; -1 is allowed. Any thread may call it. */
void host_fork_close(int fd);

/* Number of forks since the library was loaded. An object that stores it at its
 * creation can tell whether it is used in a child. */
unsigned host_fork_generation(void);

#endif
