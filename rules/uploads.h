/* SPDX-License-Identifier: Apache-2.0 */
/* Whole view, SUNDOG_CHECK=1: what the program copied from the host to where
 * tagged calls read, as a number for comparison between ranks. */
#ifndef SDG_RULES_UPLOADS_H
#define SDG_RULES_UPLOADS_H

#include <stddef.h>

#include "src/call.h"
#include "src/touch.h"

/* Notes what a call is about to write into device memory: its values where it
 * copies them from host memory that can be read now, otherwise that what was
 * noted there is gone. */
void sdg_uploads_note(const sdg_touch_t *touch);
/* The same of a tagged call's output. */
void sdg_uploads_drop(const void *at, size_t bytes);
/* All of it is gone. */
void sdg_uploads_forget(void);

/* Adds to `text` the numbers of what the call's inputs were given since they
 * were last asked about: " values of x 0123456789abcdef"; nothing if there is
 * none. */
void sdg_uploads_describe(const sdg_call_t *call, char *text, size_t bytes);

#endif
