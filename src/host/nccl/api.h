/* SPDX-License-Identifier: Apache-2.0 */
/* Names of NCCL's functions: each is pncclX, with ncclX as a weak alias that a
 * program may replace. */
#ifndef SDG_SRC_HOST_NCCL_API_H
#define SDG_SRC_HOST_NCCL_API_H

#include <nccl.h>

#define NCCL_API(name)                                                         \
  extern __typeof__(p##name) name __attribute__((weak, alias("p" #name)))

#endif
