/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of hint_program share. */
#ifndef SDG_TESTS_EQUIVALENCE_SPECIAL_PROGRAMS_HINT_PROGRAM_H
#define SDG_TESTS_EQUIVALENCE_SPECIAL_PROGRAMS_HINT_PROGRAM_H

#include <cudnn.h>
#include <stddef.h>

enum { TENSORS = 26 };

typedef struct hint_tensor {
  cudnnTensorDescriptor_t desc;
  float *data;
  int extent[4];
  size_t count;
} hint_tensor_t;
extern hint_tensor_t tensors[TENSORS]; // by letter
extern float factor;                   // of axpy, scal, scale and products

/* Unless `status` is 0: prints the word, and ends the program. */
void check(int status, const char *word);

/* Whether the word says how the calls of cuBLAS are made: device, far, nowhere,
 * part. */
int hint_cublas_set(const char *word, const char *rest);
/* Whether the word is a call of cuBLAS, on tensors a and b. */
int hint_cublas(const char *word, int a, int b);

#endif
