/* SPDX-License-Identifier: Apache-2.0 */
/* How a function of NCCL is named: as pncclX, with ncclX as a weak second name
 * that a program may replace. */
#ifndef SDG_SRC_HOST_NCCL_API_H
#define SDG_SRC_HOST_NCCL_API_H

#include <nccl.h>

#define NCCL_API(name)                                                         \
  extern __typeof__(p##name) name __attribute__((weak, alias("p" #name)))

#endif
