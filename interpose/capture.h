/* SPDX-License-Identifier: Apache-2.0 */
/* From the arguments of an entry to a call, and back to its status. */
#ifndef SDG_INTERPOSE_CAPTURE_H
#define SDG_INTERPOSE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "rules/view/neighborhood.h"
#include "rules/view/redistribute.h"

/* Captures and judges one invocation. `args` is a struct sdg_args_<entry> on
 * the caller's stack, `caller` the return address of the entry. True: the call
 * was carried out or refused, *out_result is the status for the program.
 * False: give it to the real function. */
bool sdg_capture(int entry, const void *args, const void *caller,
                 int *out_result);

/* After sdg_capture gave a call to the real function: whether its status is to
 * be told by sdg_capture_after. */
bool sdg_capture_watches(void);
void sdg_capture_after(int status);

/* The same for an entry whose tensors cannot be seen: the status for the
 * program if it is refused, -1 if not. */
int sdg_capture_opaque(int entry, const void *handle, const void *caller);

/* Whole view: an entry that no op judges is about to touch device memory. Not
 * 0: the error for the program. */
int sdg_capture_touch_memory(int entry, const void *args, const void *caller);
/* The same of an entry that makes a value of vectors. True: that was made, or
 * refused; *out_result is the status to return. */
bool sdg_capture_value(int entry, const void *args, const void *caller,
                       int *out_result);
/* Shard view: a call that passes is about to write the tensor of this
 * descriptor. */
void sdg_capture_wrote(const void *descriptor, const void *data,
                       const void *caller);
/* Shard view: an entry is about to write memory of which something may be
 * known, or to make a value of it. Not 0: as above. */
int sdg_capture_note(int entry, const void *args, const void *caller);
/* It has made that value. */
int sdg_capture_made(int entry, const void *args, const void *caller);
/* cuBLAS has returned a value through a pointer, to host memory or not; 0 or
 * too many bytes: nothing is done. */
int sdg_capture_result(int entry, void *result, size_t bytes,
                       const void *caller);
/* Of a cudaDataType_t that a result may have; 0: of another. */
size_t sdg_capture_type_bytes(int type);
/* The program is about to reset the device. If due, sdg_capture_reset once the
 * device has done its work. */
bool sdg_capture_reset_due(const void *caller);
void sdg_capture_reset(void);
/* Whole view: the program has asked whether the device is done. *io_status
 * becomes what the first rank was told, where both are cudaSuccess or
 * cudaErrorNotReady. Not 0: the error for the program. */
int sdg_capture_polled(int entry, int *io_status, const void *caller);
/* A moment of sleep; false if the job has failed. */
bool sdg_capture_pause(void);
/* Whole view: the program begins to use functions that are not in the table. */
int sdg_capture_unseen(int entry, const void *caller);
/* cuDNN has timed algorithms on this rank. */
int sdg_capture_measured(int entry, int *io_count, void *measured, size_t each,
                         int room, const void *caller);
/* The program has got device memory, is about to free it. */
void sdg_capture_allocated(void *at, size_t bytes, const void *caller);
void sdg_capture_freed(void *at, const void *caller);

/* What the program gets of a call that waits for the device, whose `status` is
 * an error or after which the job has failed. Says why if another rank ended.
 */
int sdg_capture_sync(int entry, int status);

/* sundog_redistribute: an SDG number, 0 if all is well. */
int sdg_capture_redistribute(const void *handle, const sdg_side_t *x,
                             const sdg_side_t *y);

/* sundog_neighborhood_attention, forward and backward: likewise. */
int sdg_capture_neighborhood(const void *handle,
                             const sundog_neighborhood_t *how, int pieces,
                             const sdg_piece_t *piece);

/* A descriptor was created or set, or is about to be destroyed, by `caller`.
 * What cuDNN does to its own descriptors is not recorded. */
void sdg_capture_touch(const void *descriptor, const void *caller);
void sdg_capture_forget(const void *descriptor, const void *caller);

/* `caller` is about to set a descriptor of `count` sequences. In the shard view
 * some may be without elements: what to set instead, for the caller to free;
 * NULL: what it has. */
int *sdg_capture_lengths(int dims, const int *extent, size_t count,
                         const int *length, const void *caller);
/* It was set, with others. False without memory. */
bool sdg_capture_said(const void *descriptor, const int *length, size_t count);

/* cudnnGetLastErrorString: true after sundog refused the thread's last captured
 * call; then `message` holds why. */
bool sdg_capture_text(char *message, size_t bytes);

#endif
