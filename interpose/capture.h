/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a call from the arguments of an entry, and the entry's status from the
 * result. */
#ifndef SDG_INTERPOSE_CAPTURE_H
#define SDG_INTERPOSE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "rules/view/shard/replay.h"

/* sundog works for the thread from here to there; may be nested. Meanwhile the
 * thread cannot be cancelled. */
void sdg_capture_enter(void);
void sdg_capture_leave(void);
/* How often the thread has entered, and back to so often: frames in between are
 * left by an exception. */
int sdg_capture_depth(void);
void sdg_capture_unwind(int depth);
/* Whether a call from this return address is one that sundog, or cuDNN inside,
 * makes through the linker; or one of a process or thread that is no rank's. */
bool sdg_capture_is_ours(const void *caller);
bool sdg_capture_is_foreign(const void *caller);
/* Whether sundog refused the thread's last captured call of cuDNN. */
void sdg_capture_set_refused(bool refused);

/* Captures one invocation and decides what becomes of it. `args` is a struct
 * sdg_args_<entry> on the caller's stack, `caller` the return address of the
 * entry. True: the call was carried out or refused, and *out_result is the
 * status for the program. False: give the call to the real function. */
bool sdg_capture(int entry, const void *args, const void *caller,
                 int *out_result);

/* After sdg_capture gave a call to the real function: whether sdg_capture_after
 * needs its status (0: good), because its outputs are kept, or it is timed. */
bool sdg_capture_watches(void);
void sdg_capture_after(int status);

/* The same for an entry whose tensors sundog cannot see. kind, stream: as in
 * sdg_memory_access_t. Returns the status for the program if the entry is
 * refused, else -1. */
int sdg_capture_opaque(int entry, sdg_stream_kind_t kind, const void *stream,
                       const void *caller);

/* Whole view: call this before an entry without an op uses device memory. Not
 * 0: the error for the program. */
int sdg_capture_touch_memory(int entry, const void *args, const void *caller);
/* The same for an entry that computes a value from vectors. True: the value was
 * computed or refused, and *out_result is the status to return. */
bool sdg_capture_value(int entry, const void *args, const void *caller,
                       int *out_result);
/* Shard view: call this before an op whose descriptors all pass, or a product
 * that no section can be about. */
void sdg_capture_passed(int entry, const void *args, const void *caller);
/* Shard view: call this before an entry writes memory whose contents sundog may
 * know, or computes a value from it. Not 0: the error for the program. */
int sdg_capture_note(int entry, const void *args, const void *caller);
/* Call this after the entry has returned `status`, 0 if it has computed that
 * value. */
int sdg_capture_made(int entry, const void *args, int status,
                     const void *caller);
/* cuBLAS has returned a value through a pointer to host or device memory. Does
 * nothing if `bytes` is 0 or too large. */
int sdg_capture_result(int entry, void *result, size_t bytes,
                       const void *caller);
/* Bytes of a cudaDataType_t that a result may have; 0 for others. */
size_t sdg_capture_type_bytes(int type);
/* Call this before the program resets the device. If true, call
 * sdg_capture_reset after the device has finished its work. */
bool sdg_capture_reset_due(const void *caller);
void sdg_capture_reset(void);
/* Whole view: the program has asked whether the device has finished. If the
 * answers are cudaSuccess or cudaErrorNotReady, *io_status becomes the first
 * rank's answer. Not 0: the error for the program. */
int sdg_capture_polled(int entry, int *io_status, const void *caller);
/* Sleeps for a moment; false if the job has failed. */
bool sdg_capture_pause(void);
/* Whole view: the program starts to use functions that are not in the table. */
int sdg_capture_unseen(int entry, const void *caller);
/* Whether the process has a runtime older than CUDA 13, whose functions of some
 * names have other parameters ("changed" in entries.def). */
bool sdg_capture_is_changed(void);
/* cuDNN has measured algorithms on this rank. */
int sdg_capture_measured(int entry, int *io_count, void *measured, size_t each,
                         int room, const void *caller);
/* The program has allocated memory, or is about to free it. hosted: the host
 * can write there, too. */
void sdg_capture_allocated(void *at, size_t bytes, bool hosted,
                           const void *caller);
void sdg_capture_freed(void *at, const void *caller);

/* Begin and end enclose a function of the runtime that makes, launches or
 * destroys a graph; begin not 0: the error for the program, and the function is
 * not called. End returns the status for the program. */
int sdg_capture_graph_begin(int entry, sdg_graph_use_t *use,
                            const void *caller);
int sdg_capture_graph_end(int entry, const sdg_graph_use_t *use, int status,
                          const void *caller);

/* The status that the program gets from a call that waits for the device, if
 * `status` is an error or the job has failed. Says why if another rank ended.
 */
int sdg_capture_sync(int entry, int status);

/* cudnnGetLastErrorString: true if sundog refused the thread's last captured
 * call; `message` then says why. */
bool sdg_capture_text(char *message, size_t bytes);

#endif
