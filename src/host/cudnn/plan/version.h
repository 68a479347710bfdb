/* SPDX-License-Identifier: Apache-2.0 */
/* The versions of a plan's JSON. */
#ifndef SDG_SRC_HOST_CUDNN_PLAN_VERSION_H
#define SDG_SRC_HOST_CUDNN_PLAN_VERSION_H

enum { HOST_PLAN_CUDNN = 91900, HOST_PLAN_SCHEMA = 4 };

#endif
