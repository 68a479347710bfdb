/* SPDX-License-Identifier: Apache-2.0 */
/* Messages for people, on stderr; a run without problems prints nothing. */
#ifndef SDG_SRC_BASE_LOG_H
#define SDG_SRC_BASE_LOG_H

#include <stddef.h>

/* Sets the rank shown in every line; -1 (not known yet) shows none. */
void sdg_log_set_rank(int rank);
int sdg_log_rank(void);

/* While this thread is in a call, `write` writes the call's name ("call 12
 * cudnn..."); failures that do not contain it end with it. NULL: the thread is
 * in no call. */
typedef void sdg_log_place_t(char *out, size_t out_bytes);
void sdg_log_set_place(sdg_log_place_t *write);

/* Messages go to the file descriptor `file` if it is >= 0. If it cannot take a
 * message at once, or now refers to another file, the message goes to `other`,
 * and if that fails to stderr. Call once, before any message. */
void sdg_log_set_files(int file, int other);

/* Writes "sundog: [rank r] text" with one write(2), so that lines of several
 * ranks do not mix. */
void sdg_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, once for each text. */
void sdg_log_once(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

#endif
