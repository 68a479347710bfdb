/* SPDX-License-Identifier: Apache-2.0 */
/* What the fake CUDA runtime and the fake NCCL share: operations in the queues
 * of streams. */
#ifndef SDG_TESTS_UNIT_FAKE_QUEUE_H
#define SDG_TESTS_UNIT_FAKE_QUEUE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct group group_t; /* messages of NCCL */

typedef enum op_kind { OP_COPY, OP_SET, OP_WAIT, OP_GROUP, OP_CALL } op_kind_t;

typedef struct op {
  op_kind_t kind;
  char *to;
  const char *from;
  size_t to_pitch, from_pitch, to_slice, from_slice;
  size_t width, height, depth;
  int value;
  int queue;  /* OP_WAIT: waits until this queue */
  int length; /* has completed this many operations */
  group_t *group;
  void (*run)(void *argument);
  void *argument;
} op_t;

/* Appends an operation to a stream's queue. */
op_t *fake_op_add(cudaStream_t stream, op_kind_t kind);

/* Communicators are made in a thread of their own. What that one enqueues is
 * not carried out: it only connects ranks. */
bool fake_connects(void);
/* That the rank's device is current. */
void fake_device_check(void);
bool fake_is_comm_stream(cudaStream_t stream);

/* Sends and receives what is possible now. When all is done, frees the group
 * and returns true. */
bool fake_group_go(group_t *group);
void *fake_nccl_find(const char *name);
/* The mailboxes between the ranks, before they are forked. */
void fake_nccl_open(void);
void fake_nccl_close(void);

#endif
