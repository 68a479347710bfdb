/* SPDX-License-Identifier: Apache-2.0 */
/* The program's callback for messages. */
#ifndef SDG_SRC_HOST_CUDNN_DESCRIPTOR_CALLBACK_H
#define SDG_SRC_HOST_CUDNN_DESCRIPTOR_CALLBACK_H

#include "src/host/cudnn/descriptor/types.h"

/* Tells the callback, if one is set, of a refusal. Any thread may call it. */
void host_report(cudnnStatus_t status, const char *message);

#endif
