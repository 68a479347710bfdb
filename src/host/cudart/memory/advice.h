/* SPDX-License-Identifier: Apache-2.0 */
/* Advice of programs about managed memory. */
#ifndef SDG_SRC_HOST_CUDART_MEMORY_ADVICE_H
#define SDG_SRC_HOST_CUDART_MEMORY_ADVICE_H

#include "src/host/cudart/internal.h"

#pragma GCC visibility push(hidden)

/* The memory is freed: drops the advice about it. */
void host_hint_forget(const void *pointer, size_t bytes);

#pragma GCC visibility pop

#endif
