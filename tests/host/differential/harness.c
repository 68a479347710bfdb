// SPDX-License-Identifier: Apache-2.0
// Runs the generated cases over one library and prints what each call
// returned and wrote; a call that crashes is printed as such.
//
// Usage: probe LIBRARY CASES. A case prepares a descriptor of each type that
// it needs by one of the setters of that type, makes its call, and reads the
// first descriptor back through all getters. At most one argument of the call
// is out of the ordinary, so that the order of checks does not matter. Each
// function runs in a child, which a crash ends.
#include "tests/host/differential/harness.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ZONE_BYTES = 1024, ZONES = 24, OBJECTS = 32, UNTOUCHED = 0x5a };

typedef struct zone {
  _Alignas(16) unsigned char bytes[ZONE_BYTES];
  bool shown; /* handed to the call, which may write it */
  kind_t kind;
} zone_t;

static void *library;
static uint64_t seed;
static long odd_value;
static int odd; /* the parameter that is out of the ordinary; -1: none */
static zone_t zones[ZONES];
static struct {
  char type[64];
  int parameter;
  void *object;
} objects[OBJECTS];
static int object_count;
static bool fresh; /* objects of this case are not prepared */
static void *into; /* the object that a setter prepares */

static unsigned draw(unsigned below) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return (unsigned)(seed >> 33) % below;
}

static void seed_set(const char *name, int number) {
  seed = 88172645463325252u + 0xD1B54A32D192ED03u * (uint64_t)(number + 1);
  for (; *name; name++)
    seed = (seed ^ (unsigned char)*name) * 0x100000001b3u;
  seed |= 1;
  for (int i = 0; i < 4; i++)
    draw(2);
}

/* ---- values ---- */

static long ordinary(const char *name) {
  if (strcasestr(name, "nbDims") || strcasestr(name, "arrayLength"))
    return draw(3) ? 4 : 3 + (long)draw(3);
  if (strcasestr(name, "seqLength"))
    return 1;
  if (strcasestr(name, "pad"))
    return draw(3);
  if (strcasestr(name, "stride") || strcasestr(name, "dilation"))
    return 1 + draw(3);
  if (strcasestr(name, "bytes"))
    return 1l << draw(5);
  return 1 + draw(8);
}

long number(int parameter, const char *name) {
  static const long limits[] = {-1, 0, 1, 9, 1000, 65537, 1l << 30, 2147483647};
  return parameter == odd
             ? (odd_value = limits[draw(sizeof limits / sizeof limits[0])])
             : ordinary(name);
}

long choice(int parameter, const long *values, int count) {
  static const long limits[] = {-1, 99, 1000};
  /* The first ones go with all the others. */
  int plain = count < 3 ? count : count < 6 ? (count + 1) / 2 : 3;
  if (parameter != odd)
    return values[draw((unsigned)plain)];
  return odd_value = draw(3) ? values[draw((unsigned)count)] : limits[draw(3)];
}

double real(int parameter) {
  static const double limits[] = {-1, 0, 1e-30, 1e30, 2};
  return parameter == odd ? limits[draw(5)] : 0.5 + draw(8) * 0.5;
}

static void fill_numbers(void *at, const char *name) {
  int *numbers = at;
  for (size_t i = 0; i < ZONE_BYTES / sizeof *numbers; i++)
    numbers[i] = strcmp(name, "axes") == 0 ? (int)i : (int)ordinary(name);
}

void *memory(int parameter, kind_t kind, const char *name) {
  zone_t *zone = &zones[parameter];
  if (parameter == odd)
    return NULL;
  memset(zone->bytes, UNTOUCHED, ZONE_BYTES);
  zone->kind = kind;
  zone->shown = kind == RESULT || kind == ADDRESS;
  if (kind == NUMBERS)
    fill_numbers(zone->bytes, name);
  if (kind == FLOATS)
    for (size_t i = 0; i < ZONE_BYTES / sizeof(float); i++)
      ((float *)zone->bytes)[i] = 1.0f;
  if (kind == TEXT)
    strcpy((char *)zone->bytes, "text");
  return zone->bytes;
}

/* ---- descriptors ---- */

static function_t function_named(const char *name) {
  function_t function;
  *(void **)&function = dlsym(library, name);
  return function;
}

/* cudnnTensorDescriptor_t -> cudnnCreateTensorDescriptor, but
 * cublasLtMatrixLayout_t -> cublasLtMatrixLayoutCreate. */
static function_t creator_of(const char *type) {
  char name[128];
  int length = (int)strlen(type) - 2; /* without the _t */
  if (strncmp(type, "cublasLt", 8) == 0)
    snprintf(name, sizeof name, "%.*sCreate", length, type);
  else
    snprintf(name, sizeof name, "cudnnCreate%.*s", length - 5, type + 5);
  return function_named(name);
}

/* NVIDIA's library does not initialise these; their first setter does. */
static bool fresh_is_undefined(const char *type) {
  return strstr(type, "OpTensor") || strstr(type, "ReduceTensor") ||
         strstr(type, "Activation");
}

/* Returns the object for this parameter of the call. Its first use creates it,
 * mostly followed by a setter with ordinary values. */
static void *object_of(const char *type, int parameter) {
  for (int i = 0; i < object_count; i++)
    if (objects[i].parameter == parameter && strcmp(objects[i].type, type) == 0)
      return objects[i].object;
  /* Those of cuBLASLt take a type and sizes, too; the others do not look. */
  typedef int (*create_t)(void **, long, long, long, long);
  create_t create = (create_t)creator_of(type);
  void *object = NULL;
  if (!create || object_count == OBJECTS || create(&object, 68, 4, 5, 4) != 0)
    return NULL;
  snprintf(objects[object_count].type, sizeof objects[0].type, "%s", type);
  objects[object_count].parameter = parameter;
  objects[object_count++].object = object;
  const row_t *setters[32];
  unsigned count = 0;
  for (int i = 0; i < row_count && count < 32; i++)
    if (strcmp(rows[i].first, type) == 0 && strstr(rows[i].name, "Set"))
      setters[count++] = &rows[i];
  if (count == 0 || (fresh && !fresh_is_undefined(type)))
    return object;
  const row_t *setter = setters[fresh_is_undefined(type) ? 0 : draw(count)];
  into = object;
  for (int tries = 0; tries < 20; tries++)
    if (setter->call(function_named(setter->name)) == 0)
      break;
  into = NULL;
  return object;
}

void *descriptor(const char *type, int parameter) {
  if (into)
    return parameter == 0 ? into : NULL;
  void *object = object_of(type, parameter);
  return parameter == odd ? NULL : object;
}

void *descriptors(const char *type, int parameter) {
  void **list = (void **)zones[parameter].bytes;
  void *object = into ? NULL : object_of(type, parameter);
  if (parameter == odd)
    return NULL;
  for (size_t i = 0; i < ZONE_BYTES / sizeof *list; i++)
    list[i] = object;
  return list;
}

static int nothing(void) {
  return 0;
}

/* ---- cases ---- */

static void zone_show(int index) {
  const zone_t *zone = &zones[index];
  const unsigned *words = (const unsigned *)zone->bytes;
  size_t last = ZONE_BYTES / 4;
  while (last > 0 && words[last - 1] == 0x5a5a5a5au)
    last--;
  if (last == 0)
    return;
  printf(" %d:", index);
  if (zone->kind == ADDRESS) {
    printf("written");
    return;
  }
  for (size_t i = 0; i < last; i++)
    printf("%s%x", i ? "," : "", words[i]);
}

static int call(const row_t *row, function_t function) {
  for (int i = 0; i < ZONES; i++)
    zones[i].shown = false;
  int status = row->call(function);
  /* Without a handle, it is random which of several faults is found first. */
  if (status != 0 && strstr(row->first, "Handle_t") && row->parameters > 1)
    printf(" refused");
  else
    printf(" %d", status);
  for (int i = 0; status == 0 && i < ZONES; i++)
    if (zones[i].shown)
      zone_show(i);
  return status;
}

static void read_back(const char *type) {
  odd = -1;
  for (int i = 0; i < row_count; i++)
    if (strcmp(rows[i].first, type) == 0 && strstr(rows[i].name, "Get") &&
        !strstr(rows[i].name, "Output") && !strstr(rows[i].name, "Size")) {
      printf(" %s", rows[i].name + 5);
      call(&rows[i], function_named(rows[i].name));
    }
}

static void case_run(const row_t *row, function_t function, int number) {
  seed_set(row->name, number);
  object_count = 0;
  odd = -1;
  fresh = draw(16) == 0;
  /* Makes the objects before the values, which need the same memory. */
  row->call((function_t)nothing);
  odd_value = 0;
  odd = fresh || number % 3 == 0 || row->parameters == 0
            ? -1
            : (int)draw((unsigned)row->parameters);
  printf("%s %d odd %d:", row->name, number, odd);
  fflush(stdout);
  int status = call(row, function);
  if (odd_value)
    printf(" of %ld", odd_value);
  printf("\n");
  /* Descriptors after a refused set are not compared. */
  if (status == 0 && strstr(row->name, "Set") && object_count > 0) {
    printf("%s %d back:", row->name, number);
    fflush(stdout);
    read_back(row->first);
    printf("\n");
  }
  fflush(stdout);
}

/* Runs the cases from `first` in a child; returns the number after a crash. */
static int cases_run(const row_t *row, function_t function, int first,
                     int cases) {
  int progress[2];
  if (pipe(progress) != 0)
    exit(5);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(30);
    for (int i = first; i < cases; i++) {
      (void)!write(progress[1], &i, sizeof i);
      case_run(row, function, i);
    }
    _exit(0);
  }
  close(progress[1]);
  int status, at = first, seen;
  while (read(progress[0], &seen, sizeof seen) == (ssize_t)sizeof seen)
    at = seen;
  close(progress[0]);
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return cases;
  printf(" crash\n");
  fflush(stdout);
  return at + 1;
}

int main(int argc, char **argv) {
  if (argc != 3 || !(library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL))) {
    fprintf(stderr, "usage: probe LIBRARY CASES: %s\n",
            argc == 3 ? dlerror() : "");
    return 2;
  }
  for (int i = 0; i < row_count; i++) {
    function_t function = function_named(rows[i].name);
    if (!function) {
      printf("%s is not there\n", rows[i].name);
      continue;
    }
    /* Without arguments there is one case. */
    int cases = rows[i].parameters == 0 ? 1 : atoi(argv[2]);
    for (int at = 0; at < cases;)
      at = cases_run(&rows[i], function, at, cases);
  }
  return 0;
}
