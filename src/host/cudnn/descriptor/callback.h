/* SPDX-License-Identifier: Apache-2.0 */
/* The program's callback for messages. */
#ifndef SDG_SRC_HOST_CUDNN_DESCRIPTOR_CALLBACK_H
#define SDG_SRC_HOST_CUDNN_DESCRIPTOR_CALLBACK_H

#include "src/host/cudnn/descriptor/types.h"

/* Tells the callback, if there is one, of a refusal; any thread. */
void host_report(cudnnStatus_t status, const char *message);

#endif
