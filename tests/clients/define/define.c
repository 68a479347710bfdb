/* SPDX-License-Identifier: Apache-2.0 */
/* A solver that describes its stencil to sundog by sundog_define().
 *
 * usage: define ROWS RANK HOW
 *
 * ROWS: those of the ranks, as in 5,4,7. RANK -1 has all. Writes its values,
 * each with its place, to the standard output.
 *
 * HOW
 *   call     calls the function        data      by an address in its data
 *   library  its library calls it      look      looks it up after the text
 *   open     opens the library as it runs
 *   first    calls it once before it gives the text
 *   again    gives the text twice      other     then another text
 *   differ   rank 1 gives another text absent    no library has the function
 *   own      it is in this file        early     it is not loaded yet
 *   syntax, word, value, twice, missing, section, reach, null: a faulty text
 *   unused   never calls it            one       rank 1 gives no text */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/sundog.h"
#include "tests/calls.h"
#include "tests/clients/define/spread.h"

enum { COLUMNS = 3, STEPS = 4 };

#define HEAD                                                                   \
  "  ; a comment, as in a file\n"                                              \
  "arguments = in u, out w\n"                                                  \
  "arguments = int rows, int columns   ; and two lines of one key\n"
#define TENSOR "tensor = u w: float [rows columns]\ndims = H W\n"
#define REST   "stream = none\n"
static const char good[] = HEAD TENSOR "reach = H:1 W:0\n" REST;
static const char wider[] = HEAD TENSOR "reach = H:2 W:0\n" REST;

static const char *how;

static bool is(const char *word) {
  return strcmp(how, word) == 0;
}

int own_spread(int rows);
int own_spread(int rows) {
  return rows;
}

#ifdef LINKED
static spread_t *by_data = spread;
#endif

static const struct {
  const char *how, *name, *text;
} faults[] = {
    {"syntax", "spread", "arguments\n" TENSOR REST},
    {"word", "spread", HEAD TENSOR "raech = H:1\n" REST},
    {"value", "spread", HEAD TENSOR "reach = H:-1\n" REST},
    {"twice", "spread", HEAD TENSOR "reach = H:1\nreach = H:1\n" REST},
    {"missing", "spread", HEAD "reach = H:1\n" REST},
    {"section", "spread", HEAD TENSOR "reach = H:1\n" REST "[shard x]\n"},
    {"reach", "spread", HEAD TENSOR "reach = W:1\n" REST},
    {"absent", "spraed", HEAD TENSOR "reach = H:1 W:0\n" REST},
    {"own", "own_spread", HEAD TENSOR "reach = H:1 W:0\n" REST},
    {"null", "spread", NULL},
};

static __typeof__(&sundog_define) define;

static void describe(int rank) {
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    if (is(faults[i].how))
      CHECK(define(faults[i].name, faults[i].text));
  if (is("one") && rank == 1)
    return;
  CHECK(define("spread", is("differ") && rank == 1 ? wider : good));
  if (is("again") || is("other"))
    CHECK(define("spread", is("again") ? good : wider));
}

static spread_t *find(void) {
  static void *library;
  if (is("open") || is("look") || is("early")) {
    library = library ? library : dlopen("./libspread.so", RTLD_NOW);
    return (spread_t *)dlsym(library, "spread");
  }
#ifdef LINKED
  return is("data") ? by_data : is("library") ? spread_by_library : spread;
#else
  return NULL;
#endif
}

static float *managed(size_t count) {
  void *memory;
  CHECK(cudaMallocManaged(&memory, (count + 1) * sizeof(float),
                          cudaMemAttachGlobal));
  return memory;
}

int main(int argc, char **argv) {
  int rows = 0, first = 0, at = 0;
  if (argc != 4)
    return EXIT_FAILURE;
  int rank = atoi(argv[2]);
  how = argv[3];
  for (const char *list = argv[1]; list; at++) {
    if (rank < 0 || at == rank)
      rows += atoi(list);
    else if (at < rank)
      first += atoi(list);
    list = strchr(list, ',');
    list = list ? list + 1 : NULL;
  }
  define = (__typeof__(define))dlsym(RTLD_DEFAULT, "sundog_define");
  float *u = managed((size_t)rows * COLUMNS),
        *w = managed((size_t)rows * COLUMNS);
  for (int i = 0; i < rows * COLUMNS; i++)
    u[i] = (float)((first * COLUMNS + i) * 7 % 11);
  if (is("first"))
    find()(u, w, rows, COLUMNS); /* so the linker has bound it */
  if (is("open"))
    find();
  if (define)
    describe(rank);
  for (int s = 0; s < STEPS && !is("unused"); s++) {
    int got = is("call")
#ifdef LINKED
                  ? spread(u, w, rows, COLUMNS)
#else
                  ? -1
#endif
                  : find()(u, w, rows, COLUMNS);
    if (got < 0)
      return 9; /* refused */
    float *old = u;
    u = w;
    w = old;
  }
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < rows * COLUMNS; i++)
    printf("%d %a\n", first * COLUMNS + i, (double)u[i]);
  return EXIT_SUCCESS;
}
