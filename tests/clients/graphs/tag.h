/* SPDX-License-Identifier: Apache-2.0 */
/* How a program that is not linked to sundog tags its memory. */
#ifndef SDG_TESTS_CLIENTS_GRAPHS_TAG_H
#define SDG_TESTS_CLIENTS_GRAPHS_TAG_H

#include <dlfcn.h>
#include <stddef.h>

#include "tests/calls.h"

/* sundog_tag_range of the library that was preloaded. */
static inline void tag_range(const void *memory, size_t bytes,
                             const char *text) {
  int (*tag)(const void *, size_t, const char *);
  *(void **)&tag = dlsym(RTLD_DEFAULT, "sundog_tag_range");
  CHECK(!tag);
  CHECK(tag(memory, bytes, text));
}

#endif
