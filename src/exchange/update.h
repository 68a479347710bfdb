/* SPDX-License-Identifier: Apache-2.0 */
/* Updates distributed tensors of the buffer table: one exchange, in place.
 * Only the thread that makes tagged calls may call these functions. */
#ifndef SDG_SRC_EXCHANGE_UPDATE_H
#define SDG_SRC_EXCHANGE_UPDATE_H

#include <cuda_runtime_api.h>

#include "src/exchange/exec.h"
#include "src/geometry/buffer.h"
#include "src/observe/report.h"

/* Sends the boxes `lack` (from sdg_buffer_lack) on the communication stream.
 * The exchange runs after the work that `stream` has and before the work it
 * gets next. Collective over the job. `cause` names the call in messages;
 * `row` counts bytes and waits and may be NULL. Does not change the table. */
sdg_status_t sdg_update_run(const sdg_buffer_t *buffer, const sdg_box_t *lack,
                            const char *cause, cudaStream_t stream,
                            sdg_report_row_t *row) SDG_MUST_CHECK;

/* Prepares the same exchange to be prefetched with a plan
 * (src/exchange/exec.h). sdg_exec_run_how, with `rest`, has to finish it before
 * anything else accesses the tensor. `call` is filled; it and out->plan are
 * valid until the next update. */
sdg_status_t sdg_update_early(const sdg_buffer_t *buffer, const sdg_box_t *lack,
                              const char *cause, sdg_call_t *call,
                              sdg_prefetch_t *out) SDG_MUST_CHECK;

/* Copies the first rank's bytes to every rank of the job's group: `height`
 * rows of `width` bytes, `pitch` bytes apart. */
sdg_status_t sdg_update_from_first(void *at, size_t width, size_t pitch,
                                   size_t height, const char *cause,
                                   cudaStream_t stream,
                                   sdg_report_row_t *row) SDG_MUST_CHECK;

/* Copies the tensor of the first rank along `axes` to the other ranks along
 * `axes`, in place. Extents and the order of dimensions in memory are the same
 * on all ranks; strides may differ. Collective over the job's group. */
sdg_status_t sdg_update_alike(void *at, const sdg_layout_t *layout,
                              sdg_axes_t axes, const char *cause,
                              cudaStream_t stream,
                              sdg_report_row_t *row) SDG_MUST_CHECK;

#endif
