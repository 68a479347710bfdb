/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of tensors as numbers. Inside this folder only. */
#ifndef SDG_RULES_OBSERVE_NUMBER_H
#define SDG_RULES_OBSERVE_NUMBER_H

#include <stdbool.h>

#include "rules/file/function/function.h"

/* True for float, double, half and bfloat16; the others take only these. */
bool sdg_number_floats(sdg_number_t type);
double sdg_number_read(sdg_number_t type, const char *at);
/* `number` is finite. Types of two bytes round it towards zero. */
void sdg_number_write(sdg_number_t type, double number, char *at);

#endif
