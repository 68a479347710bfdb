// SPDX-License-Identifier: Apache-2.0
// The functions of sundog.h, as libsundog.so exports them.
#include "src/sundog.h"

#include "interpose/capture.h"
#include "interpose/load.h"
#include "rules/label.h"
#include "src/status.h"
#include "src/tag.h"
#include "src/thread.h"

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

int sundog_redistribute(void *cudnn_handle, const void *x_descriptor,
                        const char *x_placement, const void *x,
                        const void *y_descriptor, const char *y_placement,
                        void *y) {
  sdg_load_options();
  return sdg_capture_redistribute(
      cudnn_handle,
      &(sdg_side_t){x_descriptor, x_placement, (void *)(uintptr_t)x},
      &(sdg_side_t){y_descriptor, y_placement, y});
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
