/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays in files, read and written box by box: .npy and raw, in C or Fortran
 * order, of either byte order, which stays that of the file. */
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
  char *part; /* owned; of a created file that has not yet its name: the one it
                 has until then. NULL otherwise */
} sdg_npy_t;

/* Opens a .npy file for reading. SDG_E_FILE_IO, SDG_E_NPY_FORMAT (shorter than
 * its header says included). */
sdg_status_t sdg_npy_open(const char *path, sdg_npy_t *out_npy) SDG_MUST_CHECK;
/* The same for a file of elements only, which must have exactly their size. */
sdg_status_t sdg_npy_open_raw(const char *path, const char *dtype, int dims,
                              const int64_t *extent,
                              sdg_npy_t *out_npy) SDG_MUST_CHECK;

/* Makes an array file of zeros for writing; `raw`: without a header. Until
 * sdg_npy_commit it is a new file ".sundog-..." in the same folder, so that no
 * half-written file ever has the final name. Whatever had that name is replaced
 * then, a link itself and not what it points to: whether that is an input is
 * the caller's business. */
sdg_status_t sdg_npy_create(const char *path, bool raw, const char *dtype,
                            bool fortran, int dims, const int64_t *extent,
                            sdg_npy_t *out_npy) SDG_MUST_CHECK;
/* Closes the file of a created array, which can only be committed or closed
 * afterwards: a program may have more arrays than files open. */
sdg_status_t sdg_npy_finish(sdg_npy_t *npy) SDG_MUST_CHECK;
/* Gives a created file, finished or not, its name; on failure it is removed.
 * The object is closed either way. */
sdg_status_t sdg_npy_commit(sdg_npy_t *npy) SDG_MUST_CHECK;
/* Closes; removes a created file that was not committed. Twice is fine, and so
 * is a zeroed object. */
void sdg_npy_close(sdg_npy_t *npy);

/* Elements of `box`, dense and row-major in memory whatever the order of the
 * file, in the file's byte order, from and to the file. The box lies inside the
 * extents and has header.dims dimensions. */
sdg_status_t sdg_npy_read_box(const sdg_npy_t *npy, const sdg_box_t *box,
                              void *out_elements) SDG_MUST_CHECK;
sdg_status_t sdg_npy_write_box(const sdg_npy_t *npy, const sdg_box_t *box,
                               const void *elements) SDG_MUST_CHECK;
/* The same open file, which stays the original's to close, as an array whose
 * dimensions are in reverse order, and so in the other order: one in Fortran
 * order becomes one in C order, whose runs can be moved without a transpose. */
sdg_npy_t sdg_npy_mirror(const sdg_npy_t *npy);
/* A box with its dimensions in reverse order. */
sdg_box_t sdg_npy_mirror_box(const sdg_box_t *box);
/* The box of all elements. */
sdg_box_t sdg_npy_box(const sdg_npy_t *npy);

#endif
