/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for people, on stderr; nothing is printed when all is well. */
#ifndef SDG_SRC_BASE_LOG_H
#define SDG_SRC_BASE_LOG_H

#include <stddef.h>

/* Rank shown in every line; -1 (no rank known yet) shows none. */
void sdg_log_set_rank(int rank);
int sdg_log_rank(void);

/* While this thread is in a call, `write` names it ("call 12 cudnn..."), and
 * failures that do not say so themselves end with that. NULL: in none. */
typedef void sdg_log_place_t(char *out, size_t out_bytes);
void sdg_log_set_place(sdg_log_place_t *write);

/* Messages go to the file descriptor `file`, if it is one; what cannot be
 * written there at once, and where it has become another file, to `other`;
 * where that is none, to stderr. Once, before any message. */
void sdg_log_set_files(int file, int other);

/* Writes "sundog: [rank r] text" in one write(2), so that lines of several
 * ranks do not mix. */
void sdg_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, once for each text. */
void sdg_log_once(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

#endif
