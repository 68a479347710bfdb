// SPDX-License-Identifier: Apache-2.0
// Fuzzes the reader of array files.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tools/array/npy.h"

// An accepted header must be the same after it is written and read again.
static void header_return(const sdg_npy_header_t *header) {
  sdg_npy_header_t copy = *header, again;
  char text[SDG_NPY_WRITE_BYTES];
  int bytes = sdg_npy_header_format(&copy, text);
  FUZZ_HOLDS(bytes > 0 && bytes <= SDG_NPY_WRITE_BYTES && bytes % 64 == 0);
  FUZZ_HOLDS(sdg_npy_header_parse("again", text, (size_t)bytes, &again) ==
             SDG_OK);
  FUZZ_HOLDS(again.dims == header->dims &&
             again.elem_bytes == header->elem_bytes &&
             again.data_bytes == header->data_bytes &&
             again.fortran == header->fortran &&
             strcmp(again.dtype, header->dtype) == 0);
  FUZZ_HOLDS(memcmp(again.extent, header->extent,
                    (size_t)header->dims * sizeof *header->extent) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  static int file = -1;
  static char path[32];
  sdg_npy_header_t header;
  if (sdg_npy_header_parse("input", data, bytes, &header) == SDG_OK)
    header_return(&header);
  if (file < 0) {
    file = memfd_create("array", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  }
  FUZZ_HOLDS(ftruncate(file, 0) == 0 &&
             pwrite(file, data, bytes, 0) == (ssize_t)bytes);
  sdg_npy_t array;
  if (sdg_npy_open(path, &array) != SDG_OK)
    return 0;
  // An opened file must have all bytes that its header states.
  FUZZ_HOLDS(array.header.data_bytes <= (int64_t)bytes);
  sdg_box_t box = sdg_npy_box(&array);
  void *elements = malloc((size_t)array.header.data_bytes + 1);
  FUZZ_HOLDS(elements);
  FUZZ_HOLDS(sdg_npy_read_box(&array, &box, elements) == SDG_OK);
  free(elements);
  sdg_npy_close(&array);
  return 0;
}
