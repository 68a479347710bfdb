// SPDX-License-Identifier: Apache-2.0
// Moves boxes of elements between array files and memory.
#include "tools/array/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static sdg_status_t fail_io(const char *verb, const char *path) {
  return sdg_fail(SDG_E_FILE_IO, "cannot %s %s: %s", verb, path,
                  strerror(errno));
}

// Reads or writes all bytes at an offset. A short file is NPY_FORMAT: somebody
// cut it after its size was checked.
static sdg_status_t file_read(int fd, const char *path, char *to, int64_t bytes,
                              int64_t offset) {
  while (bytes > 0) {
    ssize_t n = pread(fd, to, (size_t)bytes, offset);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return fail_io("read", path);
    if (n == 0)
      return sdg_fail(SDG_E_NPY_FORMAT, "%s became shorter while it was read",
                      path);
    to += n;
    bytes -= n;
    offset += n;
  }
  return SDG_OK;
}

static sdg_status_t file_write(int fd, const char *path, const char *from,
                               int64_t bytes, int64_t offset) {
  while (bytes > 0) {
    ssize_t n = pwrite(fd, from, (size_t)bytes, offset);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return fail_io("write", path);
    from += n;
    bytes -= n;
    offset += n;
  }
  return SDG_OK;
}

// ---- opening ---------------------------------------------------------------

// Takes over fd, which is closed on failure.
static sdg_status_t npy_init(int fd, const char *path,
                             const sdg_npy_header_t *header,
                             sdg_npy_t *out_npy) {
  char *copy = strdup(path);
  if (!copy) {
    close(fd);
    return sdg_fail(SDG_E_NO_MEMORY, "the name of a file");
  }
  *out_npy = (sdg_npy_t){.header = *header, .fd = fd, .path = copy};
  return SDG_OK;
}

// Opens a regular file for reading and tells its size.
static sdg_status_t file_open(const char *path, int *out_fd,
                              int64_t *out_bytes) {
  // Not blocking, so that a pipe is refused below instead of waited for.
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return fail_io("open", path);
  struct stat stat;
  if (fstat(fd, &stat) != 0) {
    sdg_status_t status = fail_io("open", path);
    close(fd);
    return status;
  }
  if (!S_ISREG(stat.st_mode)) {
    close(fd);
    return sdg_fail(SDG_E_FILE_IO, "%s is not a regular file", path);
  }
  *out_fd = fd;
  *out_bytes = stat.st_size;
  return SDG_OK;
}

static sdg_status_t header_read(int fd, const char *path, int64_t file_bytes,
                                sdg_npy_header_t *out_header) {
  int64_t count =
      file_bytes < SDG_NPY_READ_BYTES ? file_bytes : SDG_NPY_READ_BYTES;
  char *bytes = malloc((size_t)count + 1);
  if (!bytes)
    return sdg_fail(SDG_E_NO_MEMORY, "the header of %s", path);
  sdg_status_t status;
  SDG_TRY_GOTO(file_read(fd, path, bytes, count, 0), done);
  SDG_TRY_GOTO(sdg_npy_header_parse(path, bytes, (size_t)count, out_header),
               done);
  if (file_bytes - out_header->data_offset < out_header->data_bytes)
    status = sdg_fail(
        SDG_E_NPY_FORMAT,
        "%s has %" PRId64 " bytes of elements, but its header says %" PRId64,
        path, file_bytes - out_header->data_offset, out_header->data_bytes);
done:
  free(bytes);
  return status;
}

sdg_status_t sdg_npy_open(const char *path, sdg_npy_t *out_npy) {
  int fd;
  int64_t bytes;
  sdg_npy_header_t header;
  SDG_TRY(file_open(path, &fd, &bytes));
  sdg_status_t status = header_read(fd, path, bytes, &header);
  if (status != SDG_OK) {
    close(fd);
    return status;
  }
  return npy_init(fd, path, &header, out_npy);
}

sdg_status_t sdg_npy_open_raw(const char *path, const char *dtype, int dims,
                              const int64_t *extent, sdg_npy_t *out_npy) {
  int fd;
  int64_t bytes;
  sdg_npy_header_t header;
  SDG_TRY(sdg_npy_header_init(path, dtype, dims, extent, &header));
  SDG_TRY(file_open(path, &fd, &bytes));
  if (bytes != header.data_bytes) {
    close(fd);
    return sdg_fail(SDG_E_NPY_FORMAT,
                    "%s has %" PRId64
                    " bytes, but shape and type need %" PRId64,
                    path, bytes, header.data_bytes);
  }
  return npy_init(fd, path, &header, out_npy);
}

// ---- creating --------------------------------------------------------------

// Opens a new file in the folder of `path`; the caller owns its name. Never
// opens or truncates an existing file, nor one behind a link.
static sdg_status_t part_open(const char *path, int *out_fd, char **out_part) {
  enum { TRIES = 10000 };
  static unsigned count;
  const char *slash = strrchr(path, '/');
  int folder = slash ? (int)(slash - path) + 1 : 0;
  // The name is short, because the output's name may already have the maximal
  // length.
  for (int i = 0; i < TRIES; i++) {
    char *part;
    if (asprintf(&part, "%.*s.sundog-%d-%u.part", folder, path, (int)getpid(),
                 count++) < 0)
      return sdg_fail(SDG_E_NO_MEMORY, "the name of a file");
    *out_fd =
        open(part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (*out_fd >= 0) {
      *out_part = part;
      return SDG_OK;
    }
    sdg_status_t status =
        errno == EEXIST && i + 1 < TRIES ? SDG_OK : fail_io("create", part);
    free(part);
    if (status != SDG_OK)
      return status;
  }
  return sdg_fail(SDG_E_INTERNAL, "%s", path);
}

sdg_status_t sdg_npy_create(const char *path, bool raw, const char *dtype,
                            bool fortran, int dims, const int64_t *extent,
                            sdg_npy_t *out_npy) {
  sdg_npy_header_t header;
  char text[SDG_NPY_WRITE_BYTES];
  struct stat old;
  SDG_TRY(sdg_npy_header_init(path, dtype, dims, extent, &header));
  header.fortran = fortran && dims > 1;
  int text_bytes = raw ? 0 : sdg_npy_header_format(&header, text);
  // The rename of sdg_npy_commit must not replace a device or a directory.
  if (stat(path, &old) == 0 && !S_ISREG(old.st_mode))
    return sdg_fail(SDG_E_FILE_IO, "%s is not a regular file", path);
  int fd = -1;
  char *part = NULL;
  SDG_TRY(part_open(path, &fd, &part));
  sdg_npy_t npy;
  sdg_status_t status = npy_init(fd, path, &header, &npy);
  if (status != SDG_OK) {
    unlink(part);
    free(part);
    return status;
  }
  npy.part = part;
  if (ftruncate(fd, header.data_offset + header.data_bytes) != 0)
    status = fail_io("make room in", part);
  else
    status = file_write(fd, part, text, text_bytes, 0);
  if (status != SDG_OK) {
    sdg_npy_close(&npy);
    return status;
  }
  *out_npy = npy;
  return SDG_OK;
}

sdg_status_t sdg_npy_finish(sdg_npy_t *npy) {
  // Some file systems report a full disk only here.
  int closed = npy->fd < 0 ? 0 : close(npy->fd);
  npy->fd = -1;
  return closed == 0 ? SDG_OK : fail_io("write", npy->part);
}

sdg_status_t sdg_npy_commit(sdg_npy_t *npy) {
  sdg_status_t status = sdg_npy_finish(npy);
  if (status == SDG_OK && rename(npy->part, npy->path) != 0)
    status = fail_io("name", npy->path);
  if (status == SDG_OK) {
    free(npy->part);
    npy->part = NULL;
  }
  sdg_npy_close(npy);
  return status;
}

void sdg_npy_close(sdg_npy_t *npy) {
  if (!npy->path)
    return;
  if (npy->fd >= 0)
    close(npy->fd);
  if (npy->part)
    unlink(npy->part);
  free(npy->part);
  free(npy->path);
  *npy = (sdg_npy_t){.fd = -1};
}

// ---- boxes -----------------------------------------------------------------

sdg_box_t sdg_npy_box(const sdg_npy_t *npy) {
  sdg_box_t box = {.dims = npy->header.dims};
  for (int d = 0; d < box.dims; d++)
    box.dim[d].hi = npy->header.extent[d];
  return box;
}

// Describes how a box lies in the file: as runs of contiguous bytes. One run
// has the innermost dimensions that the box covers entirely, and the next outer
// dimension. Example: in an array of 4x5x6, the box [1,3) x [1,3) x [0,6) has 2
// runs of 2*6 elements.
typedef struct layout {
  int outer; /* dimensions [0, outer) are walked, the others are in the run */
  int64_t run_bytes;
  int64_t stride_bytes[SDG_DIMS_MAX];
} layout_t;

static layout_t layout_of(const sdg_npy_header_t *header,
                          const sdg_box_t *box) {
  layout_t layout = {.outer = header->dims, .run_bytes = header->elem_bytes};
  int64_t stride = header->elem_bytes;
  bool covered = true; // all dimensions further in are covered entirely
  for (int d = header->dims - 1; d >= 0; d--) {
    int64_t size = box->dim[d].hi - box->dim[d].lo;
    layout.stride_bytes[d] = stride;
    stride *= header->extent[d];
    if (covered) {
      layout.outer = d;
      layout.run_bytes *= size;
    }
    covered &= size == header->extent[d];
  }
  return layout;
}

// Exactly one of read_to and write_from is set. The box is not empty. Treats
// the last dimension as the innermost one in the file.
static sdg_status_t runs_move(const sdg_npy_t *npy, const sdg_box_t *box,
                              char *read_to, const char *write_from) {
  layout_t layout = layout_of(&npy->header, box);
  int64_t at[SDG_DIMS_MAX];
  for (int d = 0; d < box->dims; d++)
    at[d] = box->dim[d].lo;
  for (int64_t done = 0;; done += layout.run_bytes) {
    int64_t offset = npy->header.data_offset;
    for (int d = 0; d < box->dims; d++)
      offset += at[d] * layout.stride_bytes[d];
    if (read_to)
      SDG_TRY(file_read(npy->fd, npy->path, read_to + done, layout.run_bytes,
                        offset));
    else
      SDG_TRY(file_write(npy->fd, npy->path, write_from + done,
                         layout.run_bytes, offset));
    int d = layout.outer - 1;
    for (; d >= 0 && ++at[d] == box->dim[d].hi; d--)
      at[d] = box->dim[d].lo;
    if (d < 0)
      return SDG_OK;
  }
}

// Copies the elements of a box between memory in C order, `rows`, and in
// Fortran order, `columns`.
static void box_transpose(const sdg_box_t *box, int64_t elem_bytes, char *rows,
                          char *columns, bool to_rows) {
  int64_t at[SDG_DIMS_MAX] = {0}, stride[SDG_DIMS_MAX], offset = 0;
  int64_t count = sdg_box_count(box), bytes = elem_bytes;
  for (int d = 0; d < box->dims; d++) {
    stride[d] = bytes;
    bytes *= box->dim[d].hi - box->dim[d].lo;
  }
  for (int64_t i = 0; i < count; i++, rows += elem_bytes) {
    memcpy(to_rows ? rows : columns + offset, to_rows ? columns + offset : rows,
           (size_t)elem_bytes);
    for (int d = box->dims - 1; d >= 0; d--) {
      offset += stride[d];
      if (++at[d] < box->dim[d].hi - box->dim[d].lo)
        break;
      offset -= at[d] * stride[d];
      at[d] = 0;
    }
  }
}

sdg_npy_t sdg_npy_mirror(const sdg_npy_t *npy) {
  sdg_npy_t mirror = *npy;
  for (int d = 0; d < npy->header.dims; d++)
    mirror.header.extent[d] = npy->header.extent[npy->header.dims - 1 - d];
  mirror.header.fortran = !npy->header.fortran;
  return mirror;
}

sdg_box_t sdg_npy_mirror_box(const sdg_box_t *box) {
  sdg_box_t mirror = {.dims = box->dims};
  for (int d = 0; d < box->dims; d++)
    mirror.dim[d] = box->dim[box->dims - 1 - d];
  return mirror;
}

// Exactly one of read_to and write_from is set.
static sdg_status_t box_move(const sdg_npy_t *npy, const sdg_box_t *box,
                             char *read_to, const char *write_from) {
  sdg_box_t all = sdg_npy_box(npy);
  if (box->dims != all.dims || !sdg_box_contains(&all, box))
    return sdg_fail(SDG_E_INTERNAL, "a box that extends beyond the array of %s",
                    npy->path);
  if (sdg_box_empty(box))
    return SDG_OK;
  if (!npy->header.fortran)
    return runs_move(npy, box, read_to, write_from);
  sdg_npy_t mirror = sdg_npy_mirror(npy);
  sdg_box_t mirrored = sdg_npy_mirror_box(box);
  int64_t elem_bytes = npy->header.elem_bytes;
  int64_t bytes = sdg_box_count(box) * elem_bytes;
  char *columns = malloc((size_t)bytes);
  if (!columns)
    return sdg_fail(SDG_E_NO_MEMORY, "%" PRId64 " bytes for elements of %s",
                    bytes, npy->path);
  sdg_status_t status = SDG_OK;
  if (!read_to) {
    box_transpose(box, elem_bytes, (char *)(uintptr_t)write_from, columns,
                  false);
    status = runs_move(&mirror, &mirrored, NULL, columns);
  } else {
    status = runs_move(&mirror, &mirrored, columns, NULL);
    if (status == SDG_OK)
      box_transpose(box, elem_bytes, read_to, columns, true);
  }
  free(columns);
  return status;
}

sdg_status_t sdg_npy_read_box(const sdg_npy_t *npy, const sdg_box_t *box,
                              void *out_elements) {
  return box_move(npy, box, out_elements, NULL);
}

sdg_status_t sdg_npy_write_box(const sdg_npy_t *npy, const sdg_box_t *box,
                               const void *elements) {
  return box_move(npy, box, NULL, elements);
}
