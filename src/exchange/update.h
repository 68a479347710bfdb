/* SPDX-License-Identifier: Apache-2.0 */
/* Brings distributed tensors of the buffer table up to date: one exchange, in
 * place. Thread that makes tagged calls only. */
#ifndef SDG_SRC_EXCHANGE_UPDATE_H
#define SDG_SRC_EXCHANGE_UPDATE_H

#include <cuda_runtime_api.h>

#include "src/exchange/exec.h"
#include "src/geometry/buffer.h"
#include "src/observe/report.h"

/* Sends what `lack` (of sdg_buffer_lack) says, on the communication stream,
 * between what `stream` has been given and what it gets next. Collective over
 * the job. `cause` names the call for messages; `row` counts bytes and waits,
 * may be NULL. Does not change the table. */
sdg_status_t sdg_update_run(const sdg_buffer_t *buffer, const sdg_box_t *lack,
                            const char *cause, cudaStream_t stream,
                            sdg_report_row_t *row) SDG_MUST_CHECK;

/* The same exchange, to go along with a plan (src/exchange/exec.h); what
 * sdg_exec_run_rest leaves to do comes before all else that touches the tensor.
 * `call` is filled, and as out->plan good until the next update. */
sdg_status_t sdg_update_early(const sdg_buffer_t *buffer, const sdg_box_t *lack,
                              const char *cause, sdg_call_t *call,
                              sdg_prefetch_t *out) SDG_MUST_CHECK;

/* Gives every rank of the job's group the first one's bytes: `height` rows of
 * `width` bytes, `pitch` bytes apart. */
sdg_status_t sdg_update_from_first(void *at, size_t width, size_t pitch,
                                   size_t height, const char *cause,
                                   cudaStream_t stream,
                                   sdg_report_row_t *row) SDG_MUST_CHECK;

/* Gives every rank along `axes` the tensor of the first of them, in place.
 * Extents and the order of dimensions in memory are the same on all, strides
 * need not be. Collective over the job's group. */
sdg_status_t sdg_update_alike(void *at, const sdg_layout_t *layout,
                              sdg_axes_t axes, const char *cause,
                              cudaStream_t stream,
                              sdg_report_row_t *row) SDG_MUST_CHECK;

#endif
