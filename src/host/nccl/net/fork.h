/* SPDX-License-Identifier: Apache-2.0 */
/* What a forked child must not keep: descriptors whose closing tells others
 * that a process has died, and the belief that it owns a communicator. */
#ifndef SDG_SRC_HOST_NCCL_NET_FORK_H
#define SDG_SRC_HOST_NCCL_NET_FORK_H

/* Moves `fd` to a number that no program expects (a program that closed its
 * stdout would print into the socket), and has it closed in every later child
 * of fork (exec closes it by itself). Returns the number; passes -1 through.
 * Any thread. On lack of memory the fd is closed and -1 returned. */
int host_fork_guard(int fd);

/* Closes a guarded fd; -1 is fine. Any thread. */
void host_fork_close(int fd);

/* Number of forks between the load of the library and this process; what an
 * object stored at its creation differs in a child. */
unsigned host_fork_generation(void);

#endif
