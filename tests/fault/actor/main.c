/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cuDNN program that carries out the actions in its arguments; some of them
 * are faulty.
 *
 * usage: actor RANK WORD...
 *   R:WORD     WORD for rank R only
 *   name=value one of the settings below; `set` puts them into descriptors
 *   otherwise  an action of actor.h; name=count repeats it
 * At the first call that fails, the program prints the call and its status to
 * stdout and ends with status 1; after `careless` it continues. */
#include "tests/fault/actor/actor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETTINGS = 18 };
typedef struct {
  const char *name;
  int value;
} setting_t;

/* first: the global index of the first row; out: rows of y, -1 asks cuDNN;
 * algo: -1 asks cuDNN; type, layout: cuDNN's numbers; seed: for `scribble`. */
static setting_t settings[SETTINGS] = {
    {"n", 1},      {"c", 2},      {"h", 8},      {"w", 8},        {"k", 2},
    {"kernel", 3}, {"pad", 1},    {"stride", 1}, {"dilation", 1}, {"groups", 1},
    {"type", 0},   {"layout", 0}, {"first", 0},  {"out", -1},     {"algo", -1},
    {"beta", 0},   {"alpha", 1},  {"seed", 0}};

int actor_get(const char *name) {
  for (int i = 0; i < SETTINGS; i++)
    if (strcmp(settings[i].name, name) == 0)
      return settings[i].value;
  abort();
}

actor_t actor;

/* Prints what failed. Returns 1 if the program must stop. */
int actor_failed(const char *what, const char *text) {
  printf("actor %d: %s: %s\n", actor.rank, what, text);
  fflush(stdout);
  return !actor.careless;
}

int actor_dnn_failed(const char *what, cudnnStatus_t status) {
  char text[4096] = "";
  if (status == CUDNN_STATUS_SUCCESS)
    return 0;
  cudnnGetLastErrorString(text, sizeof text);
  printf("actor %d: last error: %s\n", actor.rank, text);
  return actor_failed(what, cudnnGetErrorString(status));
}

int actor_cuda_failed(const char *what, cudaError_t status) {
  return status != cudaSuccess && actor_failed(what, cudaGetErrorName(status));
}

static const struct {
  const char *name;
  int (*act)(void);
} actions[] = {
#define ROW(name) {#name, act_##name},
    ACTOR_ACTIONS(ROW)
#undef ROW
};

static int word_run(const char *word) {
  const char *equals = strchr(word, '=');
  size_t length = equals ? (size_t)(equals - word) : strlen(word);
  int value = equals ? atoi(equals + 1) : 1;
  for (int i = 0; equals && i < SETTINGS; i++)
    if (strlen(settings[i].name) == length &&
        strncmp(settings[i].name, word, length) == 0) {
      settings[i].value = value;
      return 0;
    }
  for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
    if (strlen(actions[i].name) == length &&
        strncmp(actions[i].name, word, length) == 0) {
      int wrong = 0;
      for (; value > 0 && !wrong; value--)
        wrong = actions[i].act();
      return wrong;
    }
  printf("actor: what is %s?\n", word);
  return 2;
}

int main(int argc, char **argv) {
  actor.rank = argc > 1 ? atoi(argv[1]) : 0;
  for (int i = 2; i < argc; i++) {
    const char *word = argv[i], *colon = strchr(word, ':');
    if (colon && atoi(word) != actor.rank)
      continue;
    int wrong = word_run(colon ? colon + 1 : word);
    if (wrong)
      return wrong;
  }
  return 0;
}
