// SPDX-License-Identifier: Apache-2.0
// The epilogues of cublasLtMatmul: activations, their gradients, and gradients
// of biases.
//
// ReLU stores one bit per element in aux, set where the value is positive:
// element i of a column is bit i % 8 of byte i / 8; leading dimensions and
// strides count bits. GELU stores its input in aux.
#include "src/host/cublas/lt.h"

#include <math.h>

enum { AUX = 128, RELU_GRADIENT = 8, GELU_GRADIENT = 64, SUMS = 16 };

static const double root = 0.79788456080286535588; // sqrt(2 / pi)

static double gelu(double x) {
  return 0.5 * x * (1 + tanh(root * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(double x) {
  double t = tanh(root * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) +
         0.5 * x * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x);
}

static bool keeps_bits(const host_matmul_t *m) {
  return m->epilogue & AUX && m->epilogue & (CUBLASLT_EPILOGUE_RELU | 8);
}

static bool known(uint32_t epilogue) {
  switch (epilogue) {
  case CUBLASLT_EPILOGUE_DEFAULT:
  case CUBLASLT_EPILOGUE_RELU:
  case CUBLASLT_EPILOGUE_RELU_AUX:
  case CUBLASLT_EPILOGUE_BIAS:
  case CUBLASLT_EPILOGUE_RELU_BIAS:
  case CUBLASLT_EPILOGUE_RELU_AUX_BIAS:
  case CUBLASLT_EPILOGUE_DRELU:
  case CUBLASLT_EPILOGUE_DRELU_BGRAD:
  case CUBLASLT_EPILOGUE_GELU:
  case CUBLASLT_EPILOGUE_GELU_BIAS:
  case CUBLASLT_EPILOGUE_GELU_AUX:
  case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
  case CUBLASLT_EPILOGUE_DGELU:
  case CUBLASLT_EPILOGUE_DGELU_BGRAD:
  case CUBLASLT_EPILOGUE_BGRADA:
  case CUBLASLT_EPILOGUE_BGRADB:
    return true;
  default:
    return false;
  }
}

static bool gives_bias_gradient(uint32_t epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_BGRADA ||
         epilogue == CUBLASLT_EPILOGUE_BGRADB || epilogue & SUMS;
}

cublasStatus_t host_epilogue_check(host_ltproduct_t *p) {
  host_matmul_t *m = &p->matmul;
  if (!known(m->epilogue) || (m->epilogue != CUBLASLT_EPILOGUE_DEFAULT &&
                              host_type_is_complex((cudaDataType)p->d.type)))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (m->bias_type < 0)
    m->bias_type = p->d.type;
  if (m->aux_type < 0)
    m->aux_type = p->d.type;
  if (m->epilogue & AUX && m->aux_ld < (int64_t)p->d.rows)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (keeps_bits(m) && m->aux_ld % 128)
    return CUBLAS_STATUS_INVALID_VALUE;
  // Each product of a batch needs its own memory for the bias gradient.
  if (gives_bias_gradient(m->epilogue) && p->d.batch > 1 && !m->bias_stride)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return CUBLAS_STATUS_SUCCESS;
}

bool host_epilogue_resolve(host_ltproduct_t *p) {
  const host_matmul_t *m = &p->matmul;
  int64_t last = p->d.batch - 1, rows = (int64_t)p->d.rows;
  int64_t columns = (int64_t)p->d.columns;
  if (m->epilogue & CUBLASLT_EPILOGUE_BIAS ||
      gives_bias_gradient(m->epilogue)) {
    int64_t count = m->epilogue == CUBLASLT_EPILOGUE_BGRADB ? columns : rows;
    p->bias = host_memory_resolve(
        m->bias, (size_t)host_span_bytes((cudaDataType)m->bias_type,
                                         last * m->bias_stride + count));
    if (!p->bias)
      return false;
  }
  if (m->epilogue & AUX) {
    int64_t count = last * m->aux_stride + (columns - 1) * m->aux_ld + rows;
    int64_t bytes = keeps_bits(m)
                        ? (count + 7) / 8
                        : host_span_bytes((cudaDataType)m->aux_type, count);
    p->aux = host_memory_resolve(m->aux, (size_t)bytes);
    if (!p->aux)
      return false;
  }
  return true;
}

host_number_t host_epilogue_follow(const host_ltproduct_t *p, int64_t batch,
                                   int64_t i, int64_t j, host_number_t value) {
  const host_matmul_t *m = &p->matmul;
  int64_t at = batch * m->aux_stride + j * m->aux_ld + i;
  unsigned char *bits = p->aux, bit = (unsigned char)(1 << (at & 7));
  cudaDataType aux_type = (cudaDataType)m->aux_type;
  if (m->epilogue & CUBLASLT_EPILOGUE_BIAS)
    value += host_number_load(p->bias, (cudaDataType)m->bias_type,
                              batch * m->bias_stride + i);
  if (m->epilogue & CUBLASLT_EPILOGUE_RELU) {
    bool through = creal(value) > 0;
    if (p->aux)
      bits[at / 8] =
          (unsigned char)((bits[at / 8] & ~bit) | (through ? bit : 0));
    return through ? value : 0;
  }
  if (m->epilogue & CUBLASLT_EPILOGUE_GELU) {
    if (p->aux)
      host_number_store(p->aux, aux_type, at, value);
    return gelu(creal(value));
  }
  if (m->epilogue & RELU_GRADIENT)
    return bits[at / 8] & bit ? value : 0;
  if (m->epilogue & GELU_GRADIENT)
    return creal(value) *
           gelu_slope(creal(host_number_load(p->aux, aux_type, at)));
  return value;
}

bool host_epilogue_sums(const host_ltproduct_t *p) {
  return p->matmul.epilogue & SUMS;
}

// The sum over k of op(A)(at, k), or of op(B)(k, at).
static host_number_t sum_over_k(const host_ltproduct_t *p, int64_t batch,
                                bool of_a, int64_t at) {
  const host_layout_t *x = of_a ? &p->a : &p->b;
  const void *data = of_a ? p->at_a : p->at_b;
  bool turned = (of_a ? p->matmul.op_a : p->matmul.op_b) != CUBLAS_OP_N;
  bool along_columns = of_a != turned; // k counts columns of the stored matrix
  int64_t k = (int64_t)(along_columns ? x->columns : x->rows);
  int64_t from = x->batch > 1 ? batch : 0;
  host_number_t sum = 0;
  for (int64_t i = 0; i < k; i++)
    sum += along_columns ? host_layout_load(x, data, from, at, i)
                         : host_layout_load(x, data, from, i, at);
  return sum;
}

void host_epilogue_finish(const host_ltproduct_t *p, int64_t batch,
                          const host_number_t *sums) {
  const host_matmul_t *m = &p->matmul;
  if (!gives_bias_gradient(m->epilogue))
    return;
  bool of_b = m->epilogue == CUBLASLT_EPILOGUE_BGRADB;
  int64_t count = (int64_t)(of_b ? p->d.columns : p->d.rows);
  for (int64_t i = 0; i < count; i++)
    host_number_store(p->bias, (cudaDataType)m->bias_type,
                      batch * m->bias_stride + i,
                      sums ? sums[i] : sum_over_k(p, batch, !of_b, i));
}
