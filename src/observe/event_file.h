/* SPDX-License-Identifier: Apache-2.0 */
/* A file that a process appends records to while it runs: lines or blocks of
 * bytes, for people or for the sundog command. All files that sundog writes
 * during calls are written here. */
#ifndef SDG_SRC_OBSERVE_EVENT_FILE_H
#define SDG_SRC_OBSERVE_EVENT_FILE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/base/fd.h"

/* What to do if the file exists at the first record. */
typedef enum sdg_event_mode {
  SDG_EVENT_APPEND,
  SDG_EVENT_REPLACE,
  SDG_EVENT_CREATE, /* fail, and write nothing */
} sdg_event_mode_t;

typedef enum sdg_event_state {
  SDG_EVENT_UNUSED, /* no record so far */
  SDG_EVENT_OPEN,
  SDG_EVENT_ENDED, /* could not be opened or written, or belongs to a parent */
} sdg_event_state_t;

/* Initialise statically, by SDG_EVENT_FILE(). */
typedef struct sdg_event_file {
  pthread_mutex_t lock;
  const char *what; /* for messages: "the trace" */
  sdg_event_mode_t mode;
  const char *name; /* in the folder; %r, %h, %p: rank, machine, process */
  char *buffer;     /* holds records until it is full; NULL: none */
  size_t buffer_bytes, used;
  size_t taken_bytes; /* by all records so far */
  sdg_event_state_t state;
  sdg_fd_t file;
} sdg_event_file_t;

#define SDG_EVENT_FILE(what_, mode_, name_)                                    \
  .lock = PTHREAD_MUTEX_INITIALIZER, .what = (what_), .mode = (mode_),         \
  .name = (name_), .file = {.fd = -1}

/* Appends a record of `bytes` bytes to the file `name` in `folder`; with a
 * `name` of NULL, `folder` is the file's path, and may have %r, %h and %p. The
 * first record opens the file, for its owner only. Records of several threads
 * do not mix. A failure (a full disk) is reported once as SDG_E_TRACE_FILE;
 * later records are dropped, and the program goes on. */
void sdg_event_append(sdg_event_file_t *file, const char *folder,
                      const void *record, size_t bytes);
/* The same, unless the file would have more than `most_bytes` bytes: returns
 * false then, and for all later records. */
bool sdg_event_append_within(sdg_event_file_t *file, const char *folder,
                             const void *record, size_t bytes,
                             size_t most_bytes);
/* Writes the records that the buffer holds. */
void sdg_event_flush(sdg_event_file_t *file);
/* In the child of a fork: drops the buffered records, which belong to the
 * parent, and ends the file. Does not allocate or wait. */
void sdg_event_drop(sdg_event_file_t *file);

#endif
