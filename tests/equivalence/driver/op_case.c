/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the cuDNN calls that a script lists, on memory that a file holds.
 *
 * usage: op_case SCRIPT MEMORY OUT
 *
 * SCRIPT has one of these on each line:
 *   case                                  forgets the tensors and calls so far
 *   tensor NAME TYPE DIMS STRIDES BYTES   DIMS and STRIDES as 2x3x8x8
 *   packed NAME TYPE FORMAT DIMS BYTES    FORMAT nchw or nhwc
 *   filter NAME TYPE FORMAT DIMS BYTES
 *   sequence NAME TYPE AXES DIMS BYTES [LENGTHS]
 *                                         AXES as 1x0x2x3, outermost first
 *   memory NAME BYTES                     no descriptor
 *   alias NAME TYPE DIMS STRIDES OTHER    a tensor in the memory of another
 *   empty NAME TYPE DIMS STRIDES          a tensor without elements here
 *   call ROW KEY=VALUE...                 adds a call; `run` makes all in order
 *   spread NAME                           doubles a tensor at once, by a call
 *   run
 *   tag NAME TEXT                         sundog_tag of its descriptor
 *   range NAME TEXT                       sundog_tag_range of its memory
 *   reset NAME                            restores its first bytes
 *   watch NAME                            makes the witness (witness.c) write
 *                                         what happened since the last watch
 *   write                                 writes all memory to OUT
 * MEMORY has the first bytes of each tensor, in the script's order. OUT gets,
 * per `write`, an int32 0 and all tensors' bytes. At the first failure it gets
 * the status, and the program ends. */
#include "op_case.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS = 256, CALLS = 256, FAMILIES = 32 };

static struct {
  cudnnHandle_t handle;
  FILE *memory, *out;
  int tensors, calls;
  op_tensor_t tensor[TENSORS];
  op_call_t call[CALLS];
} g;

int op_failed(const char *what, int status) {
  char text[2048] = "";
  if (status >= 100 && status < 1000) // a code of sundog's own functions
    snprintf(text, sizeof text, "SDG-%d ", status);
  else if (status > 0)
    cudnnGetLastErrorString(text, sizeof text);
  fprintf(stderr, "op_case: %s: %s\nop_case: told '%s'\n", what,
          status > 0 ? cudnnGetErrorString((cudnnStatus_t)status) : "failed",
          text);
  return status;
}

int op_cuda_failed(const char *what, cudaError_t status) {
  fprintf(stderr, "op_case: %s: %s\n", what, cudaGetErrorString(status));
  return OP_CUDA_FAILED;
}

static int bad(const char *word) {
  fprintf(stderr, "op_case: %s is not understood\n", word ? word : "a line");
  return OP_BAD_SCRIPT;
}

/* ---- tensors ------------------------------------------------------------- */

op_tensor_t *op_find(const char *name) {
  for (int i = 0; i < g.tensors; i++)
    if (!strcmp(g.tensor[i].name, name))
      return &g.tensor[i];
  return NULL;
}

static int read_type(const char *word, cudnnDataType_t *out) {
  static const struct {
    const char *name;
    cudnnDataType_t type;
  } types[] = {{"float", CUDNN_DATA_FLOAT}, {"double", CUDNN_DATA_DOUBLE},
               {"half", CUDNN_DATA_HALF},   {"bfloat16", CUDNN_DATA_BFLOAT16},
               {"int8", CUDNN_DATA_INT8},   {"int32", CUDNN_DATA_INT32}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (!strcmp(word, types[i].name)) {
      *out = types[i].type;
      return 0;
    }
  return bad(word);
}

static int set_packed(op_tensor_t *t, cudnnTensorFormat_t format) {
  if (t->dims == 4)
    OP_TRY(cudnnSetTensor4dDescriptor(t->desc, format, t->type, t->extent[0],
                                      t->extent[1], t->extent[2],
                                      t->extent[3]));
  else
    OP_TRY(cudnnSetTensorNdDescriptorEx(t->desc, format, t->type, t->dims,
                                        t->extent));
  return 0;
}

static int set_filter(op_tensor_t *t, cudnnTensorFormat_t format) {
  if (!t->filter)
    OP_TRY(cudnnCreateFilterDescriptor(&t->filter));
  OP_TRY(cudnnSetFilterNdDescriptor(t->filter, t->type, format, t->dims,
                                    t->extent));
  return 0;
}

static int set_sequence(op_tensor_t *t, const char *axes, const char *lengths) {
  int order[OP_DIMS];
  cudnnSeqDataAxis_t axis[CUDNN_SEQDATA_DIM_COUNT];
  int sequences =
      t->extent[CUDNN_SEQDATA_BATCH_DIM] * t->extent[CUDNN_SEQDATA_BEAM_DIM];
  if (t->dims != CUDNN_SEQDATA_DIM_COUNT ||
      op_numbers(axes, OP_DIMS, order) != t->dims || sequences > OP_SEQUENCES)
    return bad(axes);
  for (int d = 0; d < t->dims; d++)
    axis[d] = (cudnnSeqDataAxis_t)order[d];
  for (int i = 0; i < sequences; i++)
    t->length[i] = t->extent[CUDNN_SEQDATA_TIME_DIM];
  if (*lengths && op_numbers(lengths, OP_SEQUENCES, t->length) != sequences)
    return bad(lengths);
  if (!t->sequence)
    OP_TRY(cudnnCreateSeqDataDescriptor(&t->sequence));
  OP_TRY(cudnnSetSeqDataDescriptor(t->sequence, t->type, t->dims, t->extent,
                                   axis, (size_t)sequences, t->length, NULL));
  return 0;
}

static int load(op_tensor_t *t) {
  t->host = malloc(t->bytes);
  if (!t->host || fread(t->host, 1, t->bytes, g.memory) != t->bytes)
    return bad(t->name);
  OP_CUDA(cudaMalloc(&t->device, t->bytes));
  OP_CUDA(cudaMemcpy(t->device, t->host, t->bytes, cudaMemcpyHostToDevice));
  return 0;
}

/* Descriptors are created once and set again for each case, as in a program
 * whose inputs change. */
static int add_tensor(const char *kind, char *word[6]) {
  if (g.tensors == TENSORS || strlen(word[0]) >= sizeof g.tensor->name)
    return bad(word[0]);
  op_tensor_t *t = &g.tensor[g.tensors++];
  strcpy(t->name, word[0]);
  if (!strcmp(kind, "memory")) {
    t->bytes = strtoul(word[1], NULL, 10);
    return load(t);
  }
  OP_TRY(read_type(word[1], &t->type));
  if (!strcmp(kind, "sequence")) {
    t->dims = op_numbers(word[3], OP_DIMS, t->extent);
    OP_TRY(set_sequence(t, word[2], word[5]));
    t->bytes = strtoul(word[4], NULL, 10);
    return load(t);
  }
  if (!t->desc)
    OP_TRY(cudnnCreateTensorDescriptor(&t->desc));
  if (strcmp(kind, "packed") && strcmp(kind, "filter")) {
    int strides[OP_DIMS];
    t->dims = op_numbers(word[2], OP_DIMS, t->extent);
    if (op_numbers(word[3], OP_DIMS, strides) != t->dims)
      return bad(word[3]);
    OP_TRY(cudnnSetTensorNdDescriptor(t->desc, t->type, t->dims, t->extent,
                                      strides));
  } else {
    cudnnTensorFormat_t format =
        strcmp(word[2], "nhwc") ? CUDNN_TENSOR_NCHW : CUDNN_TENSOR_NHWC;
    t->dims = op_numbers(word[3], OP_DIMS, t->extent);
    OP_TRY(!strcmp(kind, "filter") ? set_filter(t, format)
                                   : set_packed(t, format));
  }
  if (!strcmp(kind, "empty"))
    return 0;
  if (!strcmp(kind, "alias")) {
    const op_tensor_t *other = op_find(word[4]);
    if (!other)
      return bad(word[4]);
    t->device = other->device;
    return 0;
  }
  t->bytes = strtoul(word[4], NULL, 10);
  return load(t);
}

/* text NULL: takes the tag away, before the memory is used for something
 * else. */
static int tag_memory(op_tensor_t *t, const char *text) {
  int (*say)(const void *, size_t, const char *);
  *(void **)&say = dlsym(RTLD_DEFAULT, "sundog_tag_range");
  t->tagged = text != NULL;
  return say && say(t->device, t->bytes, text) == 0 ? 0 : bad(t->name);
}

static int tag_range(const char *name, const char *text) {
  op_tensor_t *t = op_find(name);
  return t ? tag_memory(t, text) : bad(name);
}

static void forget_tensors(void) {
  for (op_tensor_t *t = g.tensor; t < g.tensor + g.tensors; t++) {
    if (t->tagged)
      (void)tag_memory(t, NULL);
    if (t->host)
      (void)cudaFree(t->device);
    free(t->host);
    t->host = NULL;
    t->device = NULL;
    t->bytes = 0;
  }
  g.tensors = 0;
}

/* ---- calls --------------------------------------------------------------- */

static const op_row_t *families[FAMILIES];

void op_rows_add(const op_row_t *rows) {
  int i = 0;
  while (families[i])
    i++;
  families[i] = rows;
}

static const op_row_t *row_of(const char *name) {
  for (int i = 0; families[i]; i++)
    for (const op_row_t *row = families[i]; row->name; row++)
      if (!strcmp(row->name, name))
        return row;
  return NULL;
}

static int add_call(const char *text) {
  if (g.calls == CALLS || strlen(text) >= sizeof g.call->text)
    return bad(text);
  op_call_t *call = &g.call[g.calls++];
  memset(call, 0, sizeof *call);
  call->handle = g.handle;
  strcpy(call->text, text);
  char *save, *word = strtok_r(call->text, " \n", &save);
  call->row = row_of(word);
  if (!call->row)
    return bad(word);
  while ((word = strtok_r(NULL, " \n", &save))) {
    char *value = strchr(word, '=');
    if (!value || call->words == OP_WORDS)
      return bad(word);
    *value = 0;
    call->key[call->words] = word;
    call->value[call->words++] = value + 1;
  }
  return 0;
}

static int run_calls(void) {
  for (op_call_t *call = g.call; call < g.call + g.calls; call++) {
    if (!call->prepared && call->row->prepare)
      OP_TRY(call->row->prepare(call));
    call->prepared = 1;
    OP_TRY(call->row->run(call));
  }
  return 0;
}

static void forget_calls(void) {
  for (op_call_t *call = g.call; call < g.call + g.calls; call++) {
    (void)cudnnDestroyConvolutionDescriptor(call->conv);
    (void)cudnnDestroyPoolingDescriptor(call->pool);
    (void)cudnnDestroyActivationDescriptor(call->act);
    (void)cudnnDestroyOpTensorDescriptor(call->op);
    (void)cudnnDestroyReduceTensorDescriptor(call->reduce);
    (void)cudnnDestroyLRNDescriptor(call->lrn);
    (void)cudnnDestroyDropoutDescriptor(call->dropout);
    if (call->more_destroy)
      call->more_destroy(call->more);
    for (int i = 0; i < 3; i++)
      (void)cudaFree(call->space[i]);
  }
  g.calls = 0;
}

/* ---- the script ---------------------------------------------------------- */

static int spread(const char *name) {
  const op_tensor_t *t = op_find(name);
  const float single = 2;
  const double wide = 2;
  if (!t)
    return bad(name);
  OP_TRY(cudnnScaleTensor(g.handle, t->desc, t->device,
                          t->type == CUDNN_DATA_DOUBLE ? (const void *)&wide
                                                       : &single));
  return 0;
}

static int tag(const char *name, const char *text) {
  const op_tensor_t *t = op_find(name);
  int (*say)(const void *, const char *);
  *(void **)&say = dlsym(RTLD_DEFAULT, "sundog_tag");
  const void *desc = t && t->sequence ? (void *)t->sequence
                     : t              ? (void *)t->desc
                                      : NULL;
  return desc && say && say(desc, text) == 0 ? 0 : bad(name);
}

static int reset(const char *name) {
  const op_tensor_t *t = op_find(name);
  if (!t || !t->host)
    return bad(name);
  OP_CUDA(cudaMemcpy(t->device, t->host, t->bytes, cudaMemcpyHostToDevice));
  return 0;
}

static int watch(const char *name) {
  int (*mark)(const char *name);
  void *found = dlsym(RTLD_DEFAULT, "witness_mark");
  memcpy(&mark, &found, sizeof mark);
  OP_CUDA(cudaDeviceSynchronize());
  return found && mark(name) == 0 ? 0 : bad("watch without a witness");
}

static int write_all(void) {
  int32_t good = 0;
  fwrite(&good, sizeof good, 1, g.out);
  for (const op_tensor_t *t = g.tensor; t < g.tensor + g.tensors; t++) {
    if (!t->host)
      continue;
    unsigned char *now = malloc(t->bytes);
    if (!now)
      return OP_CUDA_FAILED;
    cudaError_t status =
        cudaMemcpy(now, t->device, t->bytes, cudaMemcpyDeviceToHost);
    fwrite(now, 1, t->bytes, g.out);
    free(now);
    OP_CUDA(status);
  }
  return 0;
}

static int obey(char *line) {
  static char none[1];
  char whole[1024];
  snprintf(whole, sizeof whole, "%s", line);
  char *save, *verb = strtok_r(line, " \n", &save), *word[6];
  for (int i = 0; i < 6; i++) {
    word[i] = strtok_r(NULL, " \n", &save);
    if (!word[i])
      word[i] = none;
  }
  if (!verb || !strcmp(verb, "case")) {
    forget_calls();
    forget_tensors();
    return 0;
  }
  if (!strcmp(verb, "call"))
    return add_call(whole + strlen("call "));
  if (!strcmp(verb, "spread"))
    return spread(word[0]);
  if (!strcmp(verb, "tag"))
    return tag(word[0], word[1]);
  if (!strcmp(verb, "range"))
    return tag_range(word[0], word[1]);
  if (!strcmp(verb, "reset"))
    return reset(word[0]);
  if (!strcmp(verb, "watch"))
    return watch(word[0]);
  if (!strcmp(verb, "run"))
    return run_calls();
  if (!strcmp(verb, "write"))
    return write_all();
  return add_tensor(verb, word);
}

int main(int argc, char **argv) {
  bool refusals = argc == 5 && strcmp(argv[4], "refusals") == 0;
  if (argc != 4 && !refusals) {
    fprintf(stderr, "usage: op_case SCRIPT MEMORY OUT [refusals]\n");
    return 2;
  }
  FILE *script = fopen(argv[1], "r");
  g.memory = fopen(argv[2], "rb");
  g.out = fopen(argv[3], "wb");
  if (!script || !g.memory || !g.out) {
    fprintf(stderr, "op_case: cannot open its files\n");
    return 2;
  }
  int32_t status = (int32_t)cudnnCreate(&g.handle);
  int number = -1;
  bool skips = false;
  for (char line[1024]; status == 0 && fgets(line, sizeof line, script);) {
    if (strncmp(line, "case", 4) == 0) {
      number++;
      skips = false;
    }
    if (!skips)
      status = obey(line);
    if (refusals && status == CUDNN_STATUS_NOT_SUPPORTED) {
      printf("refused %d\n", number);
      skips = true;
      status = 0;
    }
  }
  if (status != 0)
    fwrite(&status, sizeof status, 1, g.out);
  forget_calls();
  forget_tensors();
  for (op_tensor_t *t = g.tensor; t < g.tensor + TENSORS; t++) {
    (void)cudnnDestroyTensorDescriptor(t->desc);
    (void)cudnnDestroyFilterDescriptor(t->filter);
    (void)cudnnDestroySeqDataDescriptor(t->sequence);
  }
  (void)cudnnDestroy(g.handle);
  fclose(script);
  fclose(g.memory);
  return fclose(g.out) == 0 && status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
