// SPDX-License-Identifier: Apache-2.0
// The trace file: collects lines and writes them in large pieces.
#include "src/observe/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/options.h"
#include "src/base/status.h"

enum { BUFFER_BYTES = 1 << 16, LINE_BYTES = 2048, PATH_BYTES = 4096 };

static struct {
  pthread_mutex_t lock;
  bool opened; // or an attempt was made
  int file;
  uint64_t lines;
  size_t used;
  char buffer[BUFFER_BYTES];
} trace = {.lock = PTHREAD_MUTEX_INITIALIZER, .file = -1};

// Appends to text, which stays terminated; cuts what does not fit.
static void append(char *text, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void append(char *text, size_t bytes, const char *format, ...) {
  size_t used = strlen(text);
  va_list args;
  va_start(args, format);
  vsnprintf(text + used, bytes - used, format, args);
  va_end(args);
}

static void path_expand(const char *pattern, char *out, size_t bytes) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  out[0] = '\0';
  for (const char *c = pattern; *c; c++) {
    if (c[0] == '%' && c[1] == 'r' && ++c)
      append(out, bytes, "%d", sdg_log_rank() < 0 ? 0 : sdg_log_rank());
    else if (c[0] == '%' && c[1] == 'h' && ++c)
      append(out, bytes, "%s", host);
    else if (c[0] == '%' && c[1] == 'p' && ++c)
      append(out, bytes, "%d", (int)getpid());
    else
      append(out, bytes, "%c", *c);
  }
}

static void file_open(void) {
  const char *pattern = sdg_options_get()->trace;
  trace.opened = true;
  if (!pattern[0])
    return;
  char path[PATH_BYTES];
  path_expand(pattern, path, sizeof path);
  trace.file =
      open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (trace.file < 0)
    (void)!sdg_fail(SDG_E_TRACE_FILE, "%s: %s", path, strerror(errno));
}

// Lock held. If the disk is full, lines are lost, but the program continues.
static void buffer_write(void) {
  size_t done = 0;
  while (trace.file >= 0 && done < trace.used) {
    ssize_t n = write(trace.file, trace.buffer + done, trace.used - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      (void)!sdg_fail(SDG_E_TRACE_FILE, "writing: %s", strerror(errno));
      close(trace.file);
      trace.file = -1;
      break;
    }
    done += (size_t)n;
  }
  trace.used = 0;
}

static void operand_append(char *line, const sdg_operand_t *operand) {
  append(line, LINE_BYTES, " %s%s=", operand->is_output ? ">" : "",
         sdg_role_name(operand->role));
  for (int i = 0; i < operand->dims; i++)
    append(line, LINE_BYTES, "%s%lld", i ? "x" : "",
           (long long)operand->extent[i]);
}

void sdg_trace_call(const sdg_call_t *call, bool done) {
  if (!sdg_options_get()->trace[0])
    return;
  char line[LINE_BYTES] = "", verdict[32] = "pass";
  if (done)
    snprintf(verdict, sizeof verdict, "done=%d", call->result);
  append(line, sizeof line, " %s %s", call->entry_name, verdict);
  for (int i = 0; i < call->operands; i++)
    operand_append(line, &call->operand[i]);
  pthread_mutex_lock(&trace.lock);
  if (!trace.opened)
    file_open();
  if (trace.file >= 0) {
    char number[24];
    size_t head = (size_t)snprintf(number, sizeof number, "%llu",
                                   (unsigned long long)++trace.lines);
    size_t bytes = strlen(line);
    if (trace.used + head + bytes + 1 > BUFFER_BYTES)
      buffer_write();
    memcpy(trace.buffer + trace.used, number, head);
    memcpy(trace.buffer + trace.used + head, line, bytes);
    trace.used += head + bytes;
    trace.buffer[trace.used++] = '\n';
  }
  pthread_mutex_unlock(&trace.lock);
}

void sdg_trace_flush(void) {
  pthread_mutex_lock(&trace.lock);
  buffer_write();
  pthread_mutex_unlock(&trace.lock);
}

void sdg_trace_drop(void) {
  // Another thread of the parent may have held the lock.
  pthread_mutex_init(&trace.lock, NULL);
  trace.used = 0;
}
