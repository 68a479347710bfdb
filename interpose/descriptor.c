// SPDX-License-Identifier: Apache-2.0
// Tells the tags what the program does to its descriptors.
#include "interpose/descriptor.h"

#include <stdlib.h>
#include <string.h>

#include "interpose/capture.h"
#include "rules/file/setup.h"
#include "rules/vendor/sequence.h"
#include "src/call/tag.h"
#include "src/job/job.h"

void sdg_descriptor_touch(const void *descriptor, const void *caller) {
  if (!sdg_capture_is_foreign(caller))
    sdg_tag_touch(descriptor);
}

void sdg_descriptor_forget(const void *descriptor, const void *caller) {
  if (!sdg_capture_is_foreign(caller))
    sdg_tag_forget(descriptor);
}

int *sdg_descriptor_lengths(int dims, const int *extent, size_t count,
                            const int *length, const void *caller) {
  // If the vendor's library refuses a call for other reasons, it does so
  // itself.
  if (sdg_capture_is_foreign(caller) || !sdg_job_asked() || !length ||
      !extent || dims != SDG_SEQUENCE_DIMS || extent[SDG_SEQUENCE_BATCH] < 1 ||
      extent[SDG_SEQUENCE_BEAM] < 1 ||
      count != (size_t)extent[SDG_SEQUENCE_BATCH] *
                   (size_t)extent[SDG_SEQUENCE_BEAM])
    return NULL;
  sdg_capture_enter();
  int *given = sdg_sequence_nonzero(length, count);
  if (given && !sdg_setup_in_pieces()) {
    free(given);
    given = NULL;
  }
  sdg_capture_leave();
  return given;
}

bool sdg_descriptor_said(const void *descriptor, const int *length,
                         size_t count) {
  return sdg_tag_say(descriptor, length, count) == SDG_OK;
}

bool sdg_descriptor_say(const void *descriptor, int numbers, const int *number,
                        int listed, const int *list, const void *caller) {
  int said[SDG_SAID_NUMBERS_MAX + SDG_SAID_LIST_MAX];
  if (sdg_capture_is_foreign(caller) || !sdg_job_asked())
    return true;
  size_t count = (size_t)numbers;
  memcpy(said, number, count * sizeof *said);
  for (int i = 0; list && i < listed && i < SDG_SAID_LIST_MAX; i++)
    said[count++] = list[i];
  return sdg_tag_say(descriptor, said, count) == SDG_OK;
}
