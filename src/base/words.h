/* SPDX-License-Identifier: Apache-2.0 */
/* Finding what a misspelt word was meant to be. Pure. */
#ifndef SDG_SRC_BASE_WORDS_H
#define SDG_SRC_BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Edit distance without regard to case: insertions, deletions, replacements
 * and swaps of neighbours count 1. Words are compared up to 63 characters.
 * "SUNDOG_SPILT" to "SUNDOG_SPLIT" is 1. */
int sdg_word_distance(const char *a, const char *b);

/* The candidate nearest to `word`, the first of equals. count >= 1. */
const char *sdg_word_nearest(const char *word, const char *const *candidates,
                             int count);

/* The number of `length` characters at `word` in a list "a|b|c", case
 * mattering; -1 if it is not in it. "" is a member of "|a". */
int sdg_word_index(const char *list, const char *word, size_t length);

/* Copies member `index` of a list "a|b|c"; false if there is none. */
bool sdg_word_at(const char *list, int index, char *out, size_t out_bytes);

#endif
