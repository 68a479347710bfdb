// SPDX-License-Identifier: Apache-2.0
// Pieces of attention are planned and computed by the cuDNN that is loaded.
#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include "rules/vendor/vendor.h"
#include "src/base/vendor.h"
#include "tests/unit/graph/attention/drawn.h"
#include "tests/unit/random.h"

__extension__ typedef _Float16 half_t;

// Nothing here calls NCCL, but the table of functions wants it.
static void *find(sdg_library_t library, const char *name) {
  return dlsym(RTLD_DEFAULT, library == SDG_LIBRARY_NCCL ? "cudaFree" : name);
}

// ---- memory ----------------------------------------------------------------

static size_t bytes_of(const sdg_attention_shape_t *s, int role) {
  return (size_t)drawn_elements(s, role) *
         sdg_graph_type_bytes(s->tensor[role].type);
}

static void number_write(cudnnDataType_t type, double value, char *at) {
  float single = (float)value;
  half_t half = (half_t)value;
  int32_t whole = (int32_t)value;
  uint32_t bits;
  memcpy(&bits, &single, sizeof bits);
  uint16_t high = (uint16_t)(bits >> 16); // the value is one of bf16
  const void *from = type == CUDNN_DATA_HALF       ? (void *)&half
                     : type == CUDNN_DATA_BFLOAT16 ? (void *)&high
                     : type == CUDNN_DATA_INT32    ? (void *)&whole
                                                   : (void *)&single;
  memcpy(at, from, sdg_graph_type_bytes(type));
}

static double number_read(cudnnDataType_t type, const char *at) {
  half_t half;
  float single;
  uint32_t bits = 0;
  if (type == CUDNN_DATA_HALF) {
    memcpy(&half, at, sizeof half);
    return (double)half;
  }
  memcpy((char *)&bits + (type == CUDNN_DATA_BFLOAT16 ? 2 : 0), at,
         sdg_graph_type_bytes(type));
  memcpy(&single, &bits, sizeof single);
  return (double)single;
}

// The bytes at which element i of a packed array lies.
static size_t place_of(const sdg_attention_shape_t *s, int role, int64_t i) {
  int64_t dim[4], offset = 0;
  drawn_extents(s, role, dim);
  for (int d = 3; d >= 0; d--) {
    offset += i % dim[d] * s->tensor[role].stride[d];
    i /= dim[d];
  }
  return (size_t)offset * sdg_graph_type_bytes(s->tensor[role].type);
}

static void *device_allocate(size_t bytes) {
  void *memory = NULL;
  REQUIRE(cudaMalloc(&memory, bytes + 1) == cudaSuccess);
  REQUIRE(cudaMemset(memory, 0xff, bytes + 1) == cudaSuccess); // NaN
  return memory;
}

static void memory_create(const drawn_t *d, void *pointer[]) {
  for (int role = 0; role < SDG_COMPOSITE_ROLES; role++) {
    const sdg_attention_tensor_t *tensor = &d->shape.tensor[role];
    bool is_output = d->shape.backward ? role >= SDG_COMPOSITE_DQ
                                       : role == SDG_COMPOSITE_O ||
                                             role == SDG_COMPOSITE_STATS;
    pointer[role] = NULL;
    if (!tensor->there)
      continue;
    size_t bytes = bytes_of(&d->shape, role);
    pointer[role] = device_allocate(bytes);
    if (is_output)
      continue;
    char *host = calloc(1, bytes);
    for (int64_t i = 0; i < drawn_elements(&d->shape, role); i++)
      number_write(tensor->type, d->value[role][i],
                   host + place_of(&d->shape, role, i));
    REQUIRE(cudaMemcpy(pointer[role], host, bytes, cudaMemcpyHostToDevice) ==
            cudaSuccess);
    free(host);
  }
}

static void memory_destroy(void *pointer[]) {
  for (int role = 0; role < SDG_COMPOSITE_ROLES; role++)
    (void)cudaFree(pointer[role]);
}

// ---- comparisons -----------------------------------------------------------

// The largest difference, relative to the largest number.
static double error_of(const drawn_t *d, int role, const double *right,
                       const char *got) {
  double error = 0, size = 1e-3;
  for (int64_t i = 0; i < drawn_elements(&d->shape, role); i++) {
    if (isnan(right[i]))
      continue;
    double value = number_read(d->shape.tensor[role].type,
                               got + place_of(&d->shape, role, i));
    double off = fabs(value - right[i]);
    error = off <= error ? error : off; // NaN, too
    size = fmax(size, fabs(right[i]));
  }
  return error / size;
}

static void results_check(const drawn_t *d, void *const pointer[]) {
  double *right[SDG_COMPOSITE_ROLES];
  char text[256];
  cudnnDataType_t type = d->shape.tensor[SDG_COMPOSITE_Q].type;
  double allowed = type == CUDNN_DATA_BFLOAT16 ? 4e-2
                   : type == CUDNN_DATA_HALF   ? 5e-3
                                               : 1e-5;
  drawn_solve(d, right);
  for (int role = 0; role < SDG_COMPOSITE_ROLES; role++) {
    if (!right[role])
      continue;
    size_t bytes = bytes_of(&d->shape, role);
    char *got = calloc(1, bytes);
    REQUIRE(cudaMemcpy(got, pointer[role], bytes, cudaMemcpyDeviceToHost) ==
            cudaSuccess);
    double error = error_of(d, role, right[role], got);
    REQUIRE_MSG(error <= allowed, "role %d is off by %g: %s", role, error,
                drawn_text(&d->shape, text));
    free(got);
    free(right[role]);
  }
}

// ---- pieces ----------------------------------------------------------------

static cudnnHandle_t handle_get(void) {
  static cudnnHandle_t handle;
  if (!handle)
    REQUIRE(cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS);
  return handle;
}

static sdg_attention_piece_t *piece_create(const sdg_attention_shape_t *shape) {
  static const sdg_graph_config_t config; // engine 0, or what heuristics say
  sdg_graph_execution_t execution = {.config = &config};
  sdg_call_t call = {.handle = handle_get(), .args = &execution};
  sdg_attention_piece_t *piece;
  char text[256];
  int refusal;
  REQUIRE(sdg_attention_piece_create(shape, &call, &piece, &refusal) == SDG_OK);
  REQUIRE_MSG(piece, "refused with %d: %s", refusal, drawn_text(shape, text));
  return piece;
}

static void piece_check(bool backward) {
  drawn_t d;
  void *pointer[SDG_COMPOSITE_ROLES];
  drawn_create(&d, backward);
  sdg_attention_piece_t *piece = piece_create(&d.shape);
  void *workspace = device_allocate(piece->workspace_bytes);
  memory_create(&d, pointer);
  // Twice, with other numbers at the same addresses.
  for (int run = 0; run < 2; run++) {
    float scale = (float)d.scale;
    REQUIRE(sdg_attention_piece_run(piece, handle_get(), pointer, &scale,
                                    workspace) == CUDNN_STATUS_SUCCESS);
    if (run == 0) {
      results_check(&d, pointer);
      if (!d.shape.backward)
        d.scale /= 2;
    }
  }
  results_check(&d, pointer);
  memory_destroy(pointer);
  REQUIRE(cudaFree(workspace) == cudaSuccess);
  sdg_attention_piece_destroy(piece);
  drawn_destroy(&d);
}

START_TEST(forward_pieces_are_attention) {
  for (int64_t i = random_cases(150); i-- > 0;)
    piece_check(false);
}
END_TEST

START_TEST(backward_pieces_are_gradients_of_attention) {
  for (int64_t i = random_cases(150); i-- > 0;)
    piece_check(true);
}
END_TEST

int main(void) {
  sdg_library_set_finder(find);
  Suite *suite = suite_create("attention_pieces");
  TCase *tcase = tcase_create("all");
  tcase_add_test(tcase, forward_pieces_are_attention);
  tcase_add_test(tcase, backward_pieces_are_gradients_of_attention);
  suite_add_tcase(suite, tcase);
  return harness_run(suite);
}
