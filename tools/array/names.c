// SPDX-License-Identifier: Apache-2.0
// Compares names of pieces, which differ in a number.
#include "tools/array/names.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/log.h"

static bool is_digit(char c) {
  return isdigit((unsigned char)c) != 0;
}

bool names_differ_by_number(const char *a, const char *b) {
  while (*a && *b) {
    bool digits = is_digit(*a) && is_digit(*b);
    if (!digits && *a++ != *b++)
      return false;
    if (digits) {
      a += strspn(a, "0123456789");
      b += strspn(b, "0123456789");
    }
  }
  return *a == *b;
}

sdg_status_t names_order_check(char *const *name, int count) {
  bool by_number = true, by_letter = true;
  for (int i = 1; i < count; i++) {
    by_number &= strverscmp(name[i - 1], name[i]) <= 0;
    by_letter &= strcmp(name[i - 1], name[i]) <= 0;
  }
  if (by_number || !by_letter)
    return SDG_OK;
  return sdg_fail(SDG_E_PIECES,
                  "the pieces are in alphabetical order, not by number; name "
                  "them with {rank}, as in 'out.{rank}.npy'");
}

// Finds the piece's number in its name: where the name differs from that of
// the piece before it, otherwise the last number. NULL if it has none.
static const char *number_find(const char *name, const char *before) {
  const char *slash = strrchr(name, '/'), *last = NULL;
  if (before && !names_differ_by_number(before, name))
    return NULL;
  if (before) {
    const char *at = name;
    while (*at && *at == *before)
      at++, before++;
    while (at > name && is_digit(at[-1]))
      at--;
    return is_digit(*at) ? at : NULL;
  }
  for (const char *at = slash ? slash + 1 : name; *at; at++)
    if (is_digit(*at)) {
      last = at;
      at += strspn(at, "0123456789") - 1;
    }
  return last;
}

// Returns the name with the next number, as wide if it begins with 0; owned.
static char *name_next(const char *name, const char *number) {
  int width = (int)strspn(number, "0123456789");
  char *next = NULL;
  if (width > 9 || asprintf(&next, "%.*s%0*d%s", (int)(number - name), name,
                            *number == '0' ? width : 1, atoi(number) + 1,
                            number + width) < 0)
    return NULL;
  return next;
}

static void next_say(char *const *name, int count) {
  const char *last = name[count - 1];
  const char *number = number_find(last, count > 1 ? name[count - 2] : NULL);
  char *next = number ? name_next(last, number) : NULL;
  bool left_out = next && access(next, F_OK) == 0;
  for (int i = 0; left_out && i < count; i++)
    left_out = strcmp(name[i], next) != 0;
  if (left_out)
    sdg_log("%s exists, but %s is the last of the pieces: if it is one of "
            "them, a part of the array is left out",
            next, last);
  free(next);
}

void names_say(char *const *name, int count) {
  for (int i = 1; i < count; i++)
    if (names_differ_by_number(name[i - 1], name[i]) &&
        strverscmp(name[i - 1], name[i]) > 0) {
      sdg_log("%s comes before %s: pieces are joined in the given order, which "
              "has to be that of the ranks",
              name[i - 1], name[i]);
      break;
    }
  next_say(name, count);
}
