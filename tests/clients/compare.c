/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the largest difference of two fields; agrees within a tolerance or
 * exits with 1.
 *
 * usage: compare EXPECTED.npy FOUND.npy TOLERANCE
 *        TOLERANCE is a fraction of the largest expected magnitude */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "npy.h"

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: compare EXPECTED.npy FOUND.npy TOLERANCE\n");
    return 2;
  }
  npy_field_t expected = npy_read(argv[1]), found = npy_read(argv[2]);
  if (expected.rows != found.rows || expected.columns != found.columns) {
    printf("%s is %d x %d, %s is %d x %d\n", argv[1], expected.rows,
           expected.columns, argv[2], found.rows, found.columns);
    return EXIT_FAILURE;
  }
  double largest = 0, magnitude = 0;
  size_t where = 0, count = (size_t)expected.rows * (size_t)expected.columns;
  for (size_t i = 0; i < count; i++) {
    double difference = fabs((double)expected.at[i] - (double)found.at[i]);
    /* Written so that a NaN counts as the largest difference there is. */
    if (!(difference <= largest)) {
      largest = isnan(difference) ? INFINITY : difference;
      where = i;
    }
    magnitude = fmax(magnitude, fabs((double)expected.at[i]));
  }
  int agree = largest <= atof(argv[3]) * magnitude;
  printf("largest difference %.3g at row %zu, column %zu (largest value %.3g)"
         ": %s\n",
         largest, where / (size_t)expected.columns,
         where % (size_t)expected.columns, magnitude,
         largest == 0 ? "identical"
         : agree      ? "agrees"
                      : "DIFFERS");
  free(expected.at);
  free(found.at);
  return agree ? EXIT_SUCCESS : EXIT_FAILURE;
}
