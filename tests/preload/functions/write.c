// SPDX-License-Identifier: Apache-2.0
// usage: write FILE NAME...: the object of these functions.
#include "tools/program/functions.h"

int main(int argc, char **argv) {
  return argc < 3 || functions_write(argv[1], (const char *const *)argv + 2,
                                     argc - 2) != SDG_OK;
}
