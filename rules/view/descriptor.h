/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of tensors that the program describes by numbers, in functions of
 * sundog.h that need no cuDNN. Inside this folder only. */
#ifndef SDG_RULES_VIEW_DESCRIPTOR_H
#define SDG_RULES_VIEW_DESCRIPTOR_H

#include <stddef.h>

#include "src/base/status.h"

/* The descriptor that stands for these bytes in the tag table: equal bytes have
 * the same one, which is never freed. Takes no lock if it exists. */
sdg_status_t sdg_descriptor_get(const void *bytes, size_t count,
                                const void **out) SDG_MUST_CHECK;

#endif
