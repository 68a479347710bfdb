/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a communicator's configuration that this library uses. */
#ifndef SDG_SRC_HOST_NCCL_CONFIG_H
#define SDG_SRC_HOST_NCCL_CONFIG_H

#include <nccl.h>
#include <stdbool.h>

/* Returns false if `config` is not valid. NULL stands for the defaults. */
bool host_config_read(const ncclConfig_t *config, bool *out_blocking);

#endif
