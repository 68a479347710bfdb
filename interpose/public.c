// SPDX-License-Identifier: Apache-2.0
// The functions of sundog.h, as libsundog.so exports them.
#include "src/sundog.h"

#include "interpose/capture.h"
#include "interpose/function/function.h"
#include "interpose/load.h"
#include "interpose/slot.h"
#include "rules/place/label.h"
#include "rules/view/combine.h"
#include "rules/view/halo.h"
#include "rules/view/neighborhood.h"
#include "rules/view/redistribute.h"
#include "src/base/status.h"
#include "src/call/range.h"
#include "src/call/tag.h"
#include "src/job/job.h"
#include "src/job/thread.h"

const char *sundog_version(void) {
  return SUNDOG_VERSION;
}

const char *sundog_error(void) {
  return sdg_last_error();
}

int sundog_thread(const char *name) {
  sdg_load_options();
  return (int)sdg_thread_set_name(name);
}

int sundog_tag(const void *descriptor, const char *split) {
  sdg_load_options();
  return (int)sdg_label_set(descriptor, split ? split : "");
}

int sundog_untag(const void *descriptor) {
  sdg_load_options();
  return (int)sdg_label_set(descriptor, NULL);
}

int sundog_tag_range(const void *pointer, size_t bytes, const char *split) {
  sdg_load_options();
  sdg_status_t status = sdg_label_set_range(pointer, bytes, split);
  if (sdg_range_any())
    sdg_slot_take_products();
  return (int)status;
}

int sundog_placement(const void *descriptor, int dims, int64_t *first,
                     int64_t *whole) {
  sdg_tag_place_t place = sdg_tag_place(descriptor);
  for (int d = 0; d < dims && d < place.dims; d++) {
    first[d] = place.first[d];
    whole[d] = place.extent[d];
  }
  return place.dims;
}

int sundog_tensor_place(const sundog_tensor_t *tensor, int64_t *first,
                        int64_t *whole) {
  sdg_load_options();
  return sdg_halo_place(tensor, first, whole);
}

// ---- operations ------------------------------------------------------------

// Fails in a forked child whose results could pass for the rank's.
static sdg_status_t enter(const char *name) {
  sdg_load_options();
  SDG_TRY(sdg_job_child(name));
  sdg_capture_enter();
  return SDG_OK;
}

static int leave(sdg_status_t status) {
  sdg_capture_leave();
  return (int)status;
}

int sundog_redistribute(void *cudnn_handle, const void *x_descriptor,
                        const char *x_placement, const void *x,
                        const void *y_descriptor, const char *y_placement,
                        void *y) {
  const sdg_side_t from = {x_descriptor, x_placement, (void *)(uintptr_t)x};
  const sdg_side_t to = {y_descriptor, y_placement, y};
  sdg_status_t status = enter("sundog_redistribute");
  return status == SDG_OK ? leave(sdg_redistribute(cudnn_handle, &from, &to))
                          : (int)status;
}

static sdg_piece_t piece(const void *descriptor, const void *data) {
  return (sdg_piece_t){descriptor, (void *)(uintptr_t)data};
}

static int attend(void *cudnn_handle, const sundog_neighborhood_t *how,
                  int pieces, const sdg_piece_t *of) {
  sdg_status_t status = enter("sundog_neighborhood_attention");
  return status == SDG_OK
             ? leave(sdg_neighborhood(cudnn_handle, how, pieces, of))
             : (int)status;
}

int sundog_neighborhood_attention(void *cudnn_handle,
                                  const sundog_neighborhood_t *how,
                                  const void *q_descriptor, const void *q,
                                  const void *k_descriptor, const void *k,
                                  const void *v_descriptor, const void *v,
                                  const void *o_descriptor, void *o) {
  const sdg_piece_t pieces[SDG_NEIGHBORHOOD_FORWARD] = {
      piece(q_descriptor, q), piece(k_descriptor, k), piece(v_descriptor, v),
      piece(o_descriptor, o)};
  return attend(cudnn_handle, how, SDG_NEIGHBORHOOD_FORWARD, pieces);
}

int sundog_neighborhood_attention_backward(
    void *cudnn_handle, const sundog_neighborhood_t *how,
    const void *q_descriptor, const void *q, const void *k_descriptor,
    const void *k, const void *v_descriptor, const void *v,
    const void *do_descriptor, const void *d_o, const void *dq_descriptor,
    void *dq, const void *dk_descriptor, void *dk, const void *dv_descriptor,
    void *dv) {
  const sdg_piece_t pieces[SDG_NEIGHBORHOOD_BACKWARD] = {
      piece(q_descriptor, q),   piece(k_descriptor, k),
      piece(v_descriptor, v),   piece(do_descriptor, d_o),
      piece(dq_descriptor, dq), piece(dk_descriptor, dk),
      piece(dv_descriptor, dv)};
  return attend(cudnn_handle, how, SDG_NEIGHBORHOOD_BACKWARD, pieces);
}

int sundog_halo(void *stream, const sundog_tensor_t *tensor, const void *data,
                const sundog_widths_t *widths, void *out) {
  sdg_status_t status = enter("sundog_halo");
  return status == SDG_OK ? leave(sdg_halo(stream, tensor, data, widths, out))
                          : (int)status;
}

int sundog_combine(void *stream, void *data, size_t count, sundog_type_t type,
                   sundog_op_t op, const char *axes) {
  sdg_status_t status = enter("sundog_combine");
  return status == SDG_OK
             ? leave(sdg_combine_values(stream, data, count, type, op, axes))
             : (int)status;
}

int sundog_define(const char *name, const char *text) {
  sdg_load_options();
  sdg_capture_enter();
  sdg_status_t status = sdg_function_define(name, text);
  sdg_capture_leave();
  return (int)status;
}
