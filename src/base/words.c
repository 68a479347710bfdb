// SPDX-License-Identifier: Apache-2.0
// Computes edit distances, and reads lists of words.
#include "src/base/words.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { WORD_MAX = 63 };

static int min_int(int a, int b) {
  return a < b ? a : b;
}

int sdg_word_distance(const char *a, const char *b) {
  int na = (int)strnlen(a, WORD_MAX), nb = (int)strnlen(b, WORD_MAX);
  // Optimal string alignment: three rows of the table are enough.
  int row[3][WORD_MAX + 1];
  for (int j = 0; j <= nb; j++)
    row[0][j] = j;
  for (int i = 1; i <= na; i++) {
    int *now = row[i % 3];
    const int *before = row[(i + 2) % 3], *earlier = row[(i + 1) % 3];
    now[0] = i;
    for (int j = 1; j <= nb; j++) {
      int ca = tolower((unsigned char)a[i - 1]);
      int cb = tolower((unsigned char)b[j - 1]);
      int d = min_int(before[j], now[j - 1]) + 1;
      d = min_int(d, before[j - 1] + (ca != cb));
      if (i > 1 && j > 1 && ca == tolower((unsigned char)b[j - 2]) &&
          cb == tolower((unsigned char)a[i - 2]))
        d = min_int(d, earlier[j - 2] + 1);
      now[j] = d;
    }
  }
  return row[na % 3][nb];
}

const char *sdg_word_nearest(const char *word, const char *const *candidates,
                             int count) {
  const char *best = NULL;
  int least = INT_MAX;
  for (int i = 0; i < count; i++) {
    int d = sdg_word_distance(word, candidates[i]);
    if (d < least) {
      least = d;
      best = candidates[i];
    }
  }
  return best;
}

int sdg_word_index(const char *list, const char *word, size_t length) {
  for (int index = 0;; index++) {
    size_t n = strcspn(list, "|");
    if (n == length && memcmp(list, word, n) == 0)
      return index;
    if (list[n] == '\0')
      return -1;
    list += n + 1;
  }
}
