// SPDX-License-Identifier: Apache-2.0
// Plays calls of cuDNN's backend API from a file, and compares what they return
// with what the file says, which was recorded on NVIDIA's library.
//
//   script LIBRARY FILE            exit 1 if a result differs
//   script --record LIBRARY FILE   prints the file with the library's results
//
// Lines of the file; a result stands behind "->":
//   case NAME                      begins anew
//   new NAME KIND -> STATUS
//   tensor NAME UID TYPE VIRTUAL BY-VALUE EXTENT... -> STATUS
//                                  a packed one, aligned to 16, finalized
//   set NAME ATTRIBUTE TYPE COUNT VALUE... -> STATUS
//   get NAME ATTRIBUTE TYPE COUNT -> STATUS [COUNT VALUE...]
//   read NAME ATTRIBUTE NAME... -> STATUS [COUNT]    descriptors into others
//   finalize NAME -> STATUS
//   destroy NAME
#include <cudnn.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS(X)                                                           \
  X(cudnnBackendCreateDescriptor)                                              \
  X(cudnnBackendDestroyDescriptor)                                             \
  X(cudnnBackendSetAttribute)                                                  \
  X(cudnnBackendGetAttribute)                                                  \
  X(cudnnBackendFinalize)

static struct {
#define X(name) __typeof__(&name) name;
  FUNCTIONS(X)
#undef X
} lib;

typedef struct {
  const char *name;
  int value;
} word_t;

static const word_t kinds[] = {
#define KIND(name) {#name, CUDNN_BACKEND_##name##_DESCRIPTOR},
#include "tests/host/cudnn/backend/kinds.def"
#undef KIND
    {NULL, 0}};

// By their numbers.
static const char *const type_names[] = {"HANDLE",
                                         "DATA_TYPE",
                                         "BOOLEAN",
                                         "INT64",
                                         "FLOAT",
                                         "DOUBLE",
                                         "VOID_PTR",
                                         "CONVOLUTION_MODE",
                                         "HEUR_MODE",
                                         "KNOB_TYPE",
                                         "NAN_PROPOGATION",
                                         "NUMERICAL_NOTE",
                                         "LAYOUT_TYPE",
                                         "ATTRIB_NAME",
                                         "POINTWISE_MODE",
                                         "BACKEND_DESCRIPTOR",
                                         "GENSTATS_MODE",
                                         "BN_FINALIZE_STATS_MODE",
                                         "REDUCTION_OPERATOR_TYPE",
                                         "BEHAVIOR_NOTE",
                                         "TENSOR_REORDERING_MODE",
                                         "RESAMPLE_MODE",
                                         "PADDING_MODE",
                                         "INT32",
                                         "CHAR",
                                         "SIGNAL_MODE",
                                         "FRACTION",
                                         "NORM_MODE",
                                         "NORM_FWD_PHASE",
                                         "RNG_DISTRIBUTION",
                                         "MOE_GROUPED_MATMUL_MODE"};

static int type_word(const char *text) {
  size_t i = 0;
  while (text && i < sizeof type_names / sizeof *type_names &&
         strcmp(type_names[i], text) != 0)
    i++;
  return (int)i;
}

static const word_t attributes[] = {
#define ROW(kind, attribute, types, refused, count, child, access)             \
  {#attribute, CUDNN_ATTR_##attribute},
#include "src/host/cudnn/backend/attributes.def"
#undef ROW
    {NULL, 0}};

static int word(const word_t *words, const char *text) {
  for (; text && words->name; words++)
    if (strcmp(words->name, text) == 0)
      return words->value;
  return text ? atoi(text) : -1;
}

enum { OBJECTS = 256, NAME_BYTES = 16, MOST = 64, LINE_BYTES = 4096 };
static struct {
  char name[NAME_BYTES];
  cudnnBackendDescriptor_t descriptor;
} objects[OBJECTS];
static int object_count;

static cudnnBackendDescriptor_t *object(const char *name) {
  for (int i = 0; i < object_count; i++)
    if (strcmp(objects[i].name, name) == 0)
      return &objects[i].descriptor;
  if (object_count == OBJECTS) {
    fprintf(stderr, "too many objects in a case\n");
    exit(2);
  }
  snprintf(objects[object_count].name, NAME_BYTES, "%s", name);
  return &objects[object_count++].descriptor;
}

static void forget_all(void) {
  for (int i = 0; i < object_count; i++)
    if (objects[i].descriptor)
      lib.cudnnBackendDestroyDescriptor(objects[i].descriptor);
  memset(objects, 0, sizeof objects);
  object_count = 0;
}

typedef union {
  int64_t whole[2 * MOST];
  double real[MOST];
  float single[MOST];
  int32_t half[MOST];
  char byte[MOST];
  void *pointer[MOST];
  cudnnFraction_t fraction[MOST];
} array_t;

static void put(array_t *array, int type, int at, const char *text) {
  cudnnFraction_t *fraction = &array->fraction[at];
  switch (type) {
  case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    array->pointer[at] = strcmp(text, "null") ? *object(text) : NULL;
    return;
  case CUDNN_TYPE_HANDLE:
  case CUDNN_TYPE_VOID_PTR:
  case CUDNN_TYPE_INT64:
    array->whole[at] = strtoll(text, NULL, 0);
    return;
  case CUDNN_TYPE_FLOAT:
    array->single[at] = strtof(text, NULL);
    return;
  case CUDNN_TYPE_DOUBLE:
    array->real[at] = strtod(text, NULL);
    return;
  case CUDNN_TYPE_FRACTION:
    sscanf(text, "%" SCNd64 "/%" SCNd64, &fraction->numerator,
           &fraction->denominator);
    return;
  case CUDNN_TYPE_BOOLEAN:
  case CUDNN_TYPE_CHAR:
    array->byte[at] = (char)atoi(text);
    return;
  }
  array->half[at] = atoi(text);
}

static int show(char *to, size_t room, const array_t *array, int type, int at) {
  switch (type) {
  case CUDNN_TYPE_HANDLE:
  case CUDNN_TYPE_VOID_PTR:
  case CUDNN_TYPE_INT64:
    return snprintf(to, room, " %" PRId64, array->whole[at]);
  case CUDNN_TYPE_FLOAT:
    return snprintf(to, room, " %.9g", (double)array->single[at]);
  case CUDNN_TYPE_DOUBLE:
    return snprintf(to, room, " %.17g", array->real[at]);
  case CUDNN_TYPE_FRACTION:
    return snprintf(to, room, " %" PRId64 "/%" PRId64,
                    array->fraction[at].numerator,
                    array->fraction[at].denominator);
  case CUDNN_TYPE_BOOLEAN:
  case CUDNN_TYPE_CHAR:
    return snprintf(to, room, " %d", array->byte[at]);
  }
  return snprintf(to, room, " %d", array->half[at]);
}

static int next_int(char **rest) {
  char *text = strtok_r(NULL, " ", rest);
  return text ? atoi(text) : 0;
}

static int play_set(char **rest) {
  array_t array = {0};
  cudnnBackendDescriptor_t to = *object(strtok_r(NULL, " ", rest));
  int attribute = word(attributes, strtok_r(NULL, " ", rest));
  int type = type_word(strtok_r(NULL, " ", rest));
  int count = next_int(rest);
  char *text = NULL;
  bool null = false;
  for (int i = 0; i < MOST && (text = strtok_r(NULL, " ", rest)); i++)
    if (strcmp(text, "nowhere") == 0)
      null = true;
    else
      put(&array, type, i, text);
  return (int)lib.cudnnBackendSetAttribute(
      to, (cudnnBackendAttributeName_t)attribute,
      (cudnnBackendAttributeType_t)type, count, null ? NULL : &array);
}

static void play_get(char **rest, char *to, size_t room) {
  array_t array = {0};
  cudnnBackendDescriptor_t from = *object(strtok_r(NULL, " ", rest));
  int attribute = word(attributes, strtok_r(NULL, " ", rest));
  int type = type_word(strtok_r(NULL, " ", rest));
  int count = next_int(rest);
  int64_t filled = 0;
  int status = (int)lib.cudnnBackendGetAttribute(
      from, (cudnnBackendAttributeName_t)attribute,
      (cudnnBackendAttributeType_t)type, count, &filled, &array);
  int at = snprintf(to, room, "%d", status);
  if (status)
    return;
  at += snprintf(to + at, room - (size_t)at, " %" PRId64, filled);
  for (int i = 0; i < filled && i < count; i++)
    at += show(to + at, room - (size_t)at, &array, type, i);
}

static void play_read(char **rest, char *to, size_t room) {
  array_t array = {0};
  cudnnBackendDescriptor_t from = *object(strtok_r(NULL, " ", rest));
  int attribute = word(attributes, strtok_r(NULL, " ", rest));
  int count = 0;
  char *text;
  while (count < MOST && (text = strtok_r(NULL, " ", rest)))
    array.pointer[count++] = *object(text);
  int64_t filled = 0;
  int status = (int)lib.cudnnBackendGetAttribute(
      from, (cudnnBackendAttributeName_t)attribute,
      CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &filled, &array);
  int at = snprintf(to, room, "%d", status);
  if (!status)
    snprintf(to + at, room - (size_t)at, " %" PRId64, filled);
}

static int set(cudnnBackendDescriptor_t to, cudnnBackendAttributeName_t name,
               cudnnBackendAttributeType_t type, int64_t count,
               const void *values) {
  return (int)lib.cudnnBackendSetAttribute(to, name, type, count, values);
}

static int play_tensor(char **rest) {
  cudnnBackendDescriptor_t *it = object(strtok_r(NULL, " ", rest));
  int64_t uid = next_int(rest), alignment = 16;
  int type = next_int(rest);
  bool is_virtual = next_int(rest), by_value = next_int(rest);
  int64_t dim[CUDNN_DIM_MAX], stride[CUDNN_DIM_MAX], step = 1;
  int rank = 0;
  for (char *text; rank < CUDNN_DIM_MAX && (text = strtok_r(NULL, " ", rest));)
    dim[rank++] = strtoll(text, NULL, 0);
  for (int i = rank - 1; i >= 0; i--) {
    stride[i] = step;
    step = (int64_t)((uint64_t)step * (uint64_t)dim[i]); // may wrap around
  }
  int wrong = (int)lib.cudnnBackendCreateDescriptor(
      CUDNN_BACKEND_TENSOR_DESCRIPTOR, it);
  wrong +=
      set(*it, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  wrong += set(*it, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, rank, dim);
  wrong += set(*it, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, rank, stride);
  wrong += set(*it, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
  wrong += set(*it, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1,
               &alignment);
  wrong += set(*it, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1,
               &is_virtual);
  wrong +=
      set(*it, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
  return wrong ? wrong : (int)lib.cudnnBackendFinalize(*it);
}

// Writes the call's result; false for lines that have none.
static bool play(char *line, char *to, size_t room) {
  char *rest = NULL;
  const char *verb = strtok_r(line, " ", &rest);
  if (!verb || verb[0] == '#')
    return false;
  if (strcmp(verb, "case") == 0) {
    forget_all();
    return false;
  }
  if (strcmp(verb, "get") == 0) {
    play_get(&rest, to, room);
    return true;
  }
  if (strcmp(verb, "read") == 0) {
    play_read(&rest, to, room);
    return true;
  }
  int status = -1;
  if (strcmp(verb, "set") == 0)
    status = play_set(&rest);
  else if (strcmp(verb, "tensor") == 0)
    status = play_tensor(&rest);
  else {
    cudnnBackendDescriptor_t *it = object(strtok_r(NULL, " ", &rest));
    if (strcmp(verb, "new") == 0) {
      int kind = word(kinds, strtok_r(NULL, " ", &rest));
      status = (int)lib.cudnnBackendCreateDescriptor(
          (cudnnBackendDescriptorType_t)kind, it);
    } else if (strcmp(verb, "finalize") == 0)
      status = (int)lib.cudnnBackendFinalize(*it);
    else if (strcmp(verb, "destroy") == 0) {
      status = (int)lib.cudnnBackendDestroyDescriptor(*it);
      *it = NULL;
    }
  }
  snprintf(to, room, "%d", status);
  return true;
}

static bool load(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return false;
  }
#define X(name)                                                                \
  *(void **)&lib.name = dlsym(library, #name);                                 \
  if (!lib.name)                                                               \
    return false;
  FUNCTIONS(X)
#undef X
  return true;
}

int main(int argc, char **argv) {
  bool record = argc > 1 && strcmp(argv[1], "--record") == 0;
  if (argc != 3 + record || !load(argv[1 + record]))
    return 2;
  FILE *file = fopen(argv[2 + record], "r");
  if (!file)
    return 2;
  static char line[LINE_BYTES], call[LINE_BYTES], result[LINE_BYTES];
  int number = 0, calls = 0, wrong = 0;
  while (fgets(line, sizeof line, file)) {
    number++;
    line[strcspn(line, "\n")] = 0;
    char *expected = strstr(line, " -> ");
    if (expected) {
      *expected = 0;
      expected += strlen(" -> ");
    }
    strcpy(call, line);
    bool has = play(call, result, sizeof result);
    if (record) {
      printf("%s%s%s\n", line, has ? " -> " : "", has ? result : "");
      fflush(stdout); // a call may end the program
    }
    calls += has;
    if (!record && has && (!expected || strcmp(expected, result) != 0)) {
      wrong++;
      printf("%s:%d: %s\n  is %s, was %s\n", argv[2], number, line, result,
             expected ? expected : "not recorded");
    }
  }
  forget_all();
  fclose(file);
  if (!record)
    printf("%d calls, %d differ\n", calls, wrong);
  return wrong || calls == 0 ? 1 : 0;
}
