/* SPDX-License-Identifier: Apache-2.0 */
/* The version of cuDNN in a plan's JSON. */
#ifndef SDG_SRC_HOST_CUDNN_PLAN_VERSION_H
#define SDG_SRC_HOST_CUDNN_PLAN_VERSION_H

enum { HOST_PLAN_CUDNN = 91900 };

#endif
