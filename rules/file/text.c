// SPDX-License-Identifier: Apache-2.0
// Reads a rules file into memory.
#include "rules/file/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 1 << 20 };

sdg_status_t sdg_text_read(const char *path, char **out_text,
                           size_t *out_bytes) {
  sdg_status_t status = SDG_OK;
  char *text = NULL;
  size_t bytes = 0;
  struct stat info;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return sdg_fail(SDG_E_RULES_FILE, "%s: %s", path, strerror(errno));
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    status = sdg_fail(SDG_E_RULES_FILE, "%s: not a regular file", path);
    goto close_file;
  }
  if (info.st_size > FILE_BYTES_MAX) {
    status = sdg_fail(SDG_E_RULES_FILE, "%s: larger than %d bytes", path,
                      FILE_BYTES_MAX);
    goto close_file;
  }
  text = malloc((size_t)info.st_size + 1);
  if (!text) {
    status = sdg_fail(SDG_E_NO_MEMORY, "for the rules");
    goto close_file;
  }
  while (bytes < (size_t)info.st_size) {
    ssize_t n = read(fd, text + bytes, (size_t)info.st_size - bytes);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break; // the file became shorter: use what was read
    bytes += (size_t)n;
  }
  *out_text = text;
  *out_bytes = bytes;
close_file:
  close(fd);
  return status;
}
