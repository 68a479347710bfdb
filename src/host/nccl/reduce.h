/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of the reductions, for all of NCCL's data types. */
#ifndef SDG_SRC_HOST_NCCL_REDUCE_H
#define SDG_SRC_HOST_NCCL_REDUCE_H

#include <stddef.h>

#include <nccl.h>

/* Returns the bytes of one element; 0 for a type that does not exist. */
size_t host_type_bytes(ncclDataType_t type);

/* out[i] = input[0][i] op input[1][i] op ... op input[ranks - 1][i], in this
 * order. Types of less than 32 bits are combined in float and rounded once.
 * Integers wrap. A maximum or minimum ignores NaN unless all are NaN. An
 * average is the sum divided by `ranks`, towards zero for integers. `out` may
 * be one of the inputs. Every element depends on its own index only, so results
 * do not depend on how a vector was cut. */
void host_reduce(ncclDataType_t type, ncclRedOp_t op, int ranks,
                 const void *const *input, void *out, size_t count);

/* out[i] = input[i] * *factor, rounded to the type. */
void host_scale(ncclDataType_t type, const void *factor, const void *input,
                void *out, size_t count);

#endif
