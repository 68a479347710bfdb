/* SPDX-License-Identifier: Apache-2.0 */
/* Calls functions of its own library, directly and by their addresses. */
#include <stdio.h>

#include "tests/preload/functions/own.h"

static int (*const at_start)(int) = own_twice;

int main(void) {
  const struct own_pair pair = {0.5, 0.25};
  for (int i = 0; i < 2; i++)
    printf("%g\n", own_many(i, 1.5, 3000000000, 0.125f, -5, 1e-3, -7, 8, 9.5,
                            -10, pair, 13));
  printf("%d %d %d\n", own_through(20), own_twice(4), at_start(5));
  return 0;
}
