// SPDX-License-Identifier: Apache-2.0
// usage: write [watched] FILE NAME...: the object of these functions.
#include <string.h>

#include "tools/program/functions.h"

int main(int argc, char **argv) {
  bool watched = argc > 1 && strcmp(argv[1], "watched") == 0;
  argc -= watched, argv += watched;
  return argc < 3 || functions_write(argv[1], (const char *const *)argv + 2,
                                     argc - 2, watched) != SDG_OK;
}
