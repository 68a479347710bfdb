// SPDX-License-Identifier: Apache-2.0
// The vendor's calls of a product's plan: products of parts, and sums of the
// ranks' terms.
#include <stdlib.h>
#include <string.h>

#include "rules/product/lt.h"
#include "rules/product/rule.h"
#include "rules/vendor/vendor.h"
#include "src/exchange/exec.h"

typedef enum kind { KIND_MULTIPLY, KIND_ADD } kind_t;

typedef struct command {
  kind_t kind;
  sdg_product_multiply_args_t multiply;
  sdg_product_addition_t add;
} command_t;

typedef struct state {
  sdg_product_t product;
  command_t *command;
  int count;
} state_t;

int sdg_product_sum_type(const sdg_product_t *product) {
  return product->matrix[SDG_RESULT].type == CUDA_R_64F ? CUDA_R_64F
                                                        : CUDA_R_32F;
}

// The type in which terms of sums are computed: never half, which has too few
// digits for sums.
static int widened_compute(const sdg_product_t *p) {
  bool half = p->compute == CUBLAS_COMPUTE_16F ||
              p->compute == CUBLAS_COMPUTE_16F_PEDANTIC;
  return half ? CUBLAS_COMPUTE_32F : p->compute;
}

sdg_product_lt_scalar_t sdg_product_lt_scalar(double value, int type) {
  sdg_product_lt_scalar_t out = {.wide = 0};
  if (type == CUDA_R_64F)
    out.wide = value;
  else if (type == CUDA_R_16F)
    out.half = value == 0 ? 0 : 0x3c00; // 1
  else if (type == CUDA_R_32I)
    out.integer = (int32_t)value;
  else
    out.single = (float)value;
  return out;
}

void sdg_product_lt_factors(const sdg_product_t *p,
                            const sdg_product_multiply_args_t *multiply,
                            const sdg_gemm_t *gemm,
                            sdg_product_lt_factors_t *out) {
  out->compute = multiply->widened ? widened_compute(p) : p->compute;
  out->scale = p->scale;
  out->alpha = gemm->alpha;
  if (multiply->widened && p->scale == CUDA_R_16F) {
    out->scale = CUDA_R_32F;
    out->own[0] = sdg_product_lt_scalar(
        sdg_product_scalar(gemm->alpha, p->scale), out->scale);
    out->alpha = &out->own[0];
  }
  out->beta = gemm->beta;
  if (multiply->beta != SDG_BETA_PROGRAM) {
    out->own[1] = sdg_product_lt_scalar(multiply->beta == SDG_BETA_ONE ? 1 : 0,
                                        out->scale);
    out->beta = &out->own[1];
  }
}

sdg_product_lt_matrix_t sdg_product_lt_matrix(const sdg_exec_t *exec,
                                              const sdg_matrix_t *matrix,
                                              int slab,
                                              const sdg_box_t *product) {
  const sdg_slab_t *s = &exec->plan->slab[slab];
  sdg_box_t box = sdg_matrix_box(matrix, product);
  sdg_product_lt_matrix_t part = {.at = sdg_exec_element(exec, slab, &box)};
  int64_t inner = 1;
  if (matrix->inner >= 0)
    inner = s->box.dim[matrix->inner].hi - s->box.dim[matrix->inner].lo;
  part.ld = s->stride[matrix->outer];
  if (part.ld < inner) // a single row or column, whose stride may be anything
    part.ld = inner;
  if (part.ld < 1)
    part.ld = 1;
  if (matrix->dims > 0 && matrix->dim[0] == SDG_BATCH)
    part.between = s->stride[0];
  return part;
}

static int multiply_run(const state_t *state,
                        const sdg_product_multiply_args_t *multiply,
                        const sdg_call_t *call, const sdg_exec_t *exec) {
  const sdg_cublas_t *cublas = sdg_cublas_get();
  const sdg_product_t *p = &state->product;
  const sdg_gemm_t *gemm = call->args;
  if (p->kind == SDG_GEMM_LT)
    return sdg_product_lt_multiply(p, multiply, call, exec);
  if (!cublas)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  sdg_product_lt_factors_t with;
  sdg_product_lt_factors(p, multiply, gemm, &with);
  sdg_product_lt_matrix_t a = sdg_product_lt_matrix(
      exec, &p->matrix[SDG_FACTOR_1], multiply->factor[0], &multiply->box);
  sdg_product_lt_matrix_t b = sdg_product_lt_matrix(
      exec, &p->matrix[SDG_FACTOR_2], multiply->factor[1], &multiply->box);
  sdg_product_lt_matrix_t c = sdg_product_lt_matrix(
      exec, &p->matrix[SDG_RESULT], multiply->result, &multiply->box);
  cublasHandle_t handle = (cublasHandle_t)(uintptr_t)call->handle;
  cudaDataType type = (cudaDataType)p->matrix[SDG_FACTOR_1].type;
  cudaDataType type_c =
      (cudaDataType)(multiply->widened ? sdg_product_sum_type(p)
                                       : p->matrix[SDG_RESULT].type);
  cublasComputeType_t compute = (cublasComputeType_t)with.compute;
  int rows = (int)sdg_box_length(&multiply->box, p->rows);
  int columns = (int)sdg_box_length(&multiply->box, p->columns);
  int terms = (int)sdg_box_length(&multiply->box, SDG_K);
  int batch = (int)sdg_box_length(&multiply->box, SDG_BATCH);
  if (batch == 1)
    return (int)cublas->cublasGemmEx(
        handle, (cublasOperation_t)p->op[0], (cublasOperation_t)p->op[1], rows,
        columns, terms, with.alpha, a.at, type, (int)a.ld, b.at, type,
        (int)b.ld, with.beta, c.at, type_c, (int)c.ld, compute,
        CUBLAS_GEMM_DEFAULT);
  return (int)cublas->cublasGemmStridedBatchedEx(
      handle, (cublasOperation_t)p->op[0], (cublasOperation_t)p->op[1], rows,
      columns, terms, with.alpha, a.at, type, (int)a.ld, a.between, b.at, type,
      (int)b.ld, b.between, with.beta, c.at, type_c, (int)c.ld, c.between,
      batch, compute, CUBLAS_GEMM_DEFAULT);
}

// to = from + beta * source, in float or double, with the program's handle. One
// call of the vendor for each member of the batch.
static int geam_run(const state_t *state, const sdg_product_addition_t *add,
                    const sdg_call_t *call, const sdg_exec_t *exec) {
  const sdg_cublas_t *cublas = sdg_cublas_get();
  const sdg_product_t *p = &state->product;
  const sdg_matrix_t *result = &p->matrix[SDG_RESULT];
  const sdg_gemm_t *gemm = call->args;
  cublasHandle_t handle = (cublasHandle_t)(uintptr_t)call->handle;
  int type = sdg_product_sum_type(p), status = CUBLAS_STATUS_SUCCESS;
  sdg_product_lt_scalar_t one = sdg_product_lt_scalar(1, type);
  sdg_product_lt_scalar_t other =
      sdg_product_lt_scalar(add->beta == SDG_BETA_ONE ? 1 : 0, type);
  if (add->beta == SDG_BETA_PROGRAM)
    other =
        sdg_product_lt_scalar(sdg_product_scalar(gemm->beta, p->scale), type);
  sdg_box_t box = add->box;
  for (int64_t i = box.dim[SDG_BATCH].lo;
       i < box.dim[SDG_BATCH].hi && status == CUBLAS_STATUS_SUCCESS; i++) {
    sdg_box_t each = box;
    each.dim[SDG_BATCH] = (sdg_range_t){i, i + 1};
    sdg_product_lt_matrix_t a =
        sdg_product_lt_matrix(exec, result, add->from, &each);
    sdg_product_lt_matrix_t b =
        sdg_product_lt_matrix(exec, result, add->source, &each);
    sdg_product_lt_matrix_t c =
        sdg_product_lt_matrix(exec, result, add->to, &each);
    int rows = (int)sdg_box_length(&box, p->rows);
    int columns = (int)sdg_box_length(&box, p->columns);
    status = type == CUDA_R_64F
                 ? (int)cublas->cublasDgeam(handle, CUBLAS_OP_N, CUBLAS_OP_N,
                                            rows, columns, &one.wide, a.at,
                                            (int)a.ld, &other.wide, b.at,
                                            (int)b.ld, c.at, (int)c.ld)
                 : (int)cublas->cublasSgeam(handle, CUBLAS_OP_N, CUBLAS_OP_N,
                                            rows, columns, &one.single, a.at,
                                            (int)a.ld, &other.single, b.at,
                                            (int)b.ld, c.at, (int)c.ld);
  }
  return status;
}

static int add_run(const state_t *state, const sdg_product_addition_t *add,
                   const sdg_call_t *call, const sdg_exec_t *exec) {
  const sdg_product_t *p = &state->product;
  bool narrow = p->matrix[SDG_RESULT].type != sdg_product_sum_type(p);
  bool converts = narrow && (!add->to_widened || !add->source_widened);
  if (p->kind == SDG_GEMM_LT || converts)
    return sdg_product_lt_add(p, add, call, exec);
  return sdg_cublas_get() ? geam_run(state, add, call, exec)
                          : CUBLAS_STATUS_NOT_INITIALIZED;
}

static int run(void *user, int index, const sdg_call_t *call,
               const sdg_exec_t *exec) {
  const state_t *state = user;
  const command_t *command = &state->command[index];
  return command->kind == KIND_MULTIPLY
             ? multiply_run(state, &command->multiply, call, exec)
             : add_run(state, &command->add, call, exec);
}

static void state_destroy(void *user) {
  state_t *state = user;
  free(state->command);
  free(state);
}

sdg_status_t sdg_product_calls_open(sdg_plan_t *plan,
                                    const sdg_product_t *product) {
  state_t *state;
  SDG_TRY(SDG_ALLOCATE(state, 1, "a plan"));
  state->product = *product;
  plan->state = state;
  plan->state_destroy = state_destroy;
  plan->run = run;
  return SDG_OK;
}

static sdg_status_t command_add(sdg_plan_t *plan, const command_t *command) {
  state_t *state = plan->state;
  command_t *grown =
      realloc(state->command, (size_t)(state->count + 1) * sizeof *grown);
  if (!grown)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  state->command = grown;
  state->command[state->count] = *command;
  return sdg_plan_call(plan, state->count++);
}

sdg_status_t sdg_product_multiply(sdg_plan_t *plan,
                                  const sdg_product_multiply_args_t *multiply) {
  const command_t command = {.kind = KIND_MULTIPLY, .multiply = *multiply};
  return command_add(plan, &command);
}

sdg_status_t sdg_product_add(sdg_plan_t *plan,
                             const sdg_product_addition_t *add) {
  const command_t command = {.kind = KIND_ADD, .add = *add};
  return command_add(plan, &command);
}
