/* SPDX-License-Identifier: Apache-2.0 */
/* Calls functions of libown.so, from several threads, with fields in device
 * memory, and prints what they return. */
#include <cuda_runtime_api.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "tests/calls.h"
#include "tests/tool/draft/own.h"

enum { FIELDS = 6, ROWS = 32, COLUMNS = 8, THREADS = 4, CALLS = 2000 };

static float *field[FIELDS];

static void *thread(void *user) {
  double *sum = user;
  for (int i = 0; i < CALLS; i++)
    *sum += own_ten(field[0], field[1], field[2], ROWS, COLUMNS, field[3], i,
                    field[4], field[5], 3, 0.5) +
            own_print(field[0], "idi", 1, 2.5, 3);
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  double sum[THREADS] = {0};
  const own_four_t x = {1, 2, 3, 4}, y = {5, 6, 7, 8};
  const int here = 4;
  for (int i = 0; i < FIELDS; i++)
    CHECK(cudaMalloc((void **)&field[i], ROWS * COLUMNS * sizeof *field[i]));
  for (int i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, thread, &sum[i]);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    printf("%g ", sum[i]);
  }
  own_four_t z = own_vector(field[0], x, y);
  struct own_six big = own_big(field[1], 0.25);
  errno = 42;
  int error = own_errno(field[0]);
  printf("%g %g %g %g %g %g\n", z[0], z[1], z[2], z[3], big.x[0], big.x[5]);
  printf("%d %d %d %d %d %d\n", error, errno, own_chosen(field[0]),
         own_nested(field[0], own_errno), own_host(&here), own_data);
  return 0;
}
