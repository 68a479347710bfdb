/* SPDX-License-Identifier: Apache-2.0 */
/* Whether libffi passes a function's structs rightly. */
#ifndef SDG_INTERPOSE_FUNCTION_STRUCTS_H
#define SDG_INTERPOSE_FUNCTION_STRUCTS_H

#include "rules/file/function/function.h"

/* libffi 3.4.4 and others before it write 16 bytes of a struct that begins with
 * integers and ends with floating numbers into the last 8 bytes of integer
 * registers on x86-64, and so change the first floating argument. Returns the
 * name of such an argument if this libffi does so, else NULL. */
const char *sdg_function_struct_wrong(const sdg_function_t *function);

#endif
