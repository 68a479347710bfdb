// SPDX-License-Identifier: Apache-2.0
// A bounded table of byte strings, each with a number of its own.
#include "rules/vendor/intern.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// If memory is short, uthash leaves the element out and does not exit.
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

enum { INTERNED_MAX = 4096 };

typedef struct interned {
  uint64_t number;
  size_t bytes;
  UT_hash_handle hh;
  char key[];
} interned_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static interned_t *first; // in order of use
static uint64_t last_number;

static interned_t *make(const void *bytes, size_t count) {
  if (HASH_COUNT(first) >= INTERNED_MAX) {
    interned_t *oldest = first;
    HASH_DEL(first, oldest);
    free(oldest);
  }
  interned_t *made = calloc(1, sizeof *made + count);
  if (!made)
    return NULL;
  made->number = ++last_number;
  made->bytes = count;
  memcpy(made->key, bytes, count);
  HASH_ADD(hh, first, key, count, made);
  if (!made->hh.tbl) {
    free(made);
    return NULL;
  }
  return made;
}

uint64_t sdg_intern(const void *bytes, size_t count) {
  interned_t *found = NULL;
  pthread_mutex_lock(&lock);
  HASH_FIND(hh, first, bytes, count, found);
  if (!found) {
    found = make(bytes, count);
  } else if (found->hh.next) { // uthash iterates in order of insertion
    HASH_DEL(first, found);
    HASH_ADD(hh, first, key, count, found);
  }
  uint64_t number = found ? found->number : 0;
  pthread_mutex_unlock(&lock);
  return number;
}
