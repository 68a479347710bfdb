/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes arrays in files, box by box: .npy and raw files, in C or
 * Fortran order, in either byte order. Bytes are not swapped. */
#ifndef SDG_TOOLS_ARRAY_NPY_H
#define SDG_TOOLS_ARRAY_NPY_H

#include <stdbool.h>

#include "src/base/status.h"
#include "src/geometry/box.h"
#include "tools/array/npy_header.h"

/* An open array file. One thread at a time. */
typedef struct sdg_npy {
  sdg_npy_header_t header;
  int fd;
  char *path; /* owned */
  char *part; /* owned; the temporary name of a created file until
                 sdg_npy_commit; NULL otherwise */
} sdg_npy_t;

/* Opens a .npy file for reading. Errors: SDG_E_FILE_IO; SDG_E_NPY_FORMAT, also
 * if the file is shorter than its header says. */
sdg_status_t sdg_npy_open(const char *path, sdg_npy_t *out_npy) SDG_MUST_CHECK;
/* Opens a file without a header, which must have exactly the size of its
 * elements. */
sdg_status_t sdg_npy_open_raw(const char *path, const char *dtype, int dims,
                              const int64_t *extent,
                              sdg_npy_t *out_npy) SDG_MUST_CHECK;

/* Makes an array file of zeros for writing; `raw`: without a header. Until
 * sdg_npy_commit its name is ".sundog-..." in the same folder, so no
 * half-written file ever has the final name. The commit replaces an existing
 * file of that name; it replaces a link itself, not the link's target. The
 * caller must check that the replaced file is not an input. */
sdg_status_t sdg_npy_create(const char *path, bool raw, const char *dtype,
                            bool fortran, int dims, const int64_t *extent,
                            sdg_npy_t *out_npy) SDG_MUST_CHECK;
/* Closes the file of a created array. Afterwards the array can only be
 * committed or closed. This lets a program create more arrays than it may have
 * open files. */
sdg_status_t sdg_npy_finish(sdg_npy_t *npy) SDG_MUST_CHECK;
/* Gives a created file its final name, whether it is finished or not; removes
 * the file on failure. Closes the object in both cases. */
sdg_status_t sdg_npy_commit(sdg_npy_t *npy) SDG_MUST_CHECK;
/* Closes the array, and removes a created file that was not committed. May be
 * called twice, and for a zeroed object. */
void sdg_npy_close(sdg_npy_t *npy);

/* Read and write the elements of `box`. In memory they are dense and row-major
 * whatever the order of the file, and have the file's byte order. The box lies
 * inside the extents and has header.dims dimensions. */
sdg_status_t sdg_npy_read_box(const sdg_npy_t *npy, const sdg_box_t *box,
                              void *out_elements) SDG_MUST_CHECK;
sdg_status_t sdg_npy_write_box(const sdg_npy_t *npy, const sdg_box_t *box,
                               const void *elements) SDG_MUST_CHECK;
/* Returns a view of the same open file with the dimensions reversed: an array
 * in Fortran order becomes one in C order, so its runs can be moved without a
 * transpose. Only the original closes the file. */
sdg_npy_t sdg_npy_mirror(const sdg_npy_t *npy);
/* Returns the box with its dimensions in reverse order. */
sdg_box_t sdg_npy_mirror_box(const sdg_box_t *box);
/* Returns the box of all elements. */
sdg_box_t sdg_npy_box(const sdg_npy_t *npy);

#endif
