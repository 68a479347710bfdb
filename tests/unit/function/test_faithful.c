// SPDX-License-Identifier: Apache-2.0
// In a run that tries calls, the program's own call gets all registers and the
// stack as the caller left them, and the program gets what it returns.
#include "interpose/function/faithful.h"

#include <pthread.h>
#include <string.h>

#include "interpose/capture.h"
#include "tests/unit/harness.h"

// ---- what faithful.c calls -------------------------------------------------

static int begins, ends, lefts;
static unsigned char ended[16]; // what the last call returned

void sdg_capture_enter(void) {
}
void sdg_capture_leave(void) {
}
int sdg_capture_depth(void) {
  return 0;
}
void sdg_capture_unwind(int depth) {
  (void)depth;
}
bool sdg_cut_tries(void) {
  return false;
}
void sdg_cut_left(sdg_cut_t *cut) {
  lefts += cut != NULL;
}
sdg_cut_t *sdg_cut_begin(sdg_function_call_t *function) {
  begins++;
  return (sdg_cut_t *)function;
}
void sdg_cut_end(sdg_cut_t *cut, const void *returned) {
  ends += cut != NULL;
  memcpy(ended, returned, 8);
}

// ---- calls -----------------------------------------------------------------

typedef struct {
  float x, y, z;
} three_t; // in registers for floats on aarch64
typedef struct {
  int64_t number[5];
} large_t; // by an address on aarch64, on the stack on x86-64
typedef struct {
  char kind;
  int64_t number;
} small_t;

#define PARAMETERS                                                             \
  int a, float b, const char *c, double d, three_t e, large_t f, short g,      \
      small_t h, int64_t i, unsigned char j, double k, int64_t l, float m,     \
      double n, bool o, double p, float q, int r, double s, signed char t,     \
      float u, large_t v
#define VALUES                                                                 \
  -7, 1.5f, "text", 2.5, (three_t){3, 4, 5}, (large_t){{6, 7, 8, 9, 10}}, -11, \
      (small_t){'s', 12}, INT64_MIN, 250, -13.25, INT64_MAX, 14.5f, 1e300,     \
      true, -1e-300, 16.25f, 17, 18.5, -19, 20.5f, (large_t) {                 \
    { 21, 22, 23, 24, 25 }                                                     \
  }

static int64_t seen[2]; // what each of both got

static int64_t sum_of(PARAMETERS) {
  return a + (int64_t)b + c[0] + (int64_t)d + (int64_t)(e.x + e.y * e.z) +
         f.number[0] * f.number[4] + g + h.kind * h.number + (i < 0) + j +
         (int64_t)k + (l > 0) + (int64_t)m + (n == 1e300) * 1000 + o +
         (p == -1e-300) * 2000 + (int64_t)(q * 4) + r + (int64_t)(s * 2) + t +
         (int64_t)(u * 2) + v.number[0] * v.number[4];
}

#define GIVEN a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v

static char token;

#define FUNCTIONS(type, name, value)                                           \
  static type name##_declared(PARAMETERS) {                                    \
    seen[0] = sum_of(GIVEN);                                                   \
    sdg_faithful_begin((sdg_function_call_t *)&token);                         \
    sdg_faithful_poison();                                                     \
    return (type)0;                                                            \
  }                                                                            \
  static type name##_real(PARAMETERS) {                                        \
    seen[1] = sum_of(GIVEN);                                                   \
    return (value);                                                            \
  }                                                                            \
  typedef type name##_t(PARAMETERS);

FUNCTIONS(int, integer, -42)
FUNCTIONS(int64_t, wide, INT64_C(0x123456789abcdef0))
FUNCTIONS(double, number, 2.75)
FUNCTIONS(float, single, -1.5f)

static void begin(void) {
  begins = ends = lefts = 0;
  memset(seen, 0, sizeof seen);
}

// Once for the trial, and once for the program.
static void both_check(void) {
  int64_t right = sum_of(VALUES);
  ck_assert_int_eq(seen[0], right);
  ck_assert_int_eq(seen[1], right);
  ck_assert_int_eq(begins, 1);
  ck_assert_int_eq(ends, 1);
}

#define CALL(name, out)                                                        \
  do {                                                                         \
    void *code;                                                                \
    name##_t *call;                                                            \
    begin();                                                                   \
    REQUIRE(sdg_faithful_make(&function, (void (*)(void))name##_declared,      \
                              (void (*)(void))name##_real, &code) == SDG_OK);  \
    memcpy(&call, &code, sizeof call);                                         \
    *(out) = call(VALUES);                                                     \
  } while (0)

START_TEST(integers_come_back) {
  static const sdg_function_t function = {.name = "f"};
  int narrow;
  int64_t wide;
  CALL(integer, &narrow);
  both_check();
  ck_assert_int_eq(narrow, -42);
  CALL(wide, &wide);
  both_check();
  ck_assert_int_eq(wide, INT64_C(0x123456789abcdef0));
  ck_assert_mem_eq(ended, &wide, sizeof wide);
}
END_TEST

START_TEST(results_that_are_floating_come_back) {
  static sdg_function_t function = {.name = "f",
                                    .returned = {.number = {'f', 8}}};
  double number;
  float single;
  CALL(number, &number);
  both_check();
  ck_assert(number == 2.75);
  ck_assert_mem_eq(ended, &number, sizeof number);
  static sdg_function_t narrow = {.name = "f",
                                  .returned = {.number = {'f', 4}}};
  function = narrow;
  CALL(single, &single);
  both_check();
  ck_assert(single == -1.5f);
  ck_assert_mem_eq(ended, &single, sizeof single);
}
END_TEST

// ---- calls that are left ---------------------------------------------------

static void leaves_declared(void) {
  sdg_faithful_begin((sdg_function_call_t *)&token);
}

static void leaves_real(void) {
  pthread_exit(&token); // unwinds the stack, as an exception of C++ does
}

static void *leaves_call(void *code) {
  void (*call)(void);
  memcpy(&call, &code, sizeof call);
  call();
  return NULL;
}

START_TEST(a_call_that_is_left_by_unwinding_has_ended) {
  static const sdg_function_t function = {.name = "f"};
  pthread_t thread;
  void *code, *left = NULL;
  begin();
  REQUIRE(sdg_faithful_make(&function, leaves_declared, leaves_real, &code) ==
          SDG_OK);
  REQUIRE(pthread_create(&thread, NULL, leaves_call, code) == 0);
  REQUIRE(pthread_join(thread, &left) == 0);
  ck_assert_ptr_eq(left, &token);
  ck_assert_int_eq(begins, 1);
  ck_assert_int_eq(lefts, 1);
  ck_assert_int_eq(ends, 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("function_faithful");
  TCase *cases = tcase_create("function_faithful");
  tcase_add_test(cases, integers_come_back);
  tcase_add_test(cases, results_that_are_floating_come_back);
  tcase_add_test(cases, a_call_that_is_left_by_unwinding_has_ended);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
