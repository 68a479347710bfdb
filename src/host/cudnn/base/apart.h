/* SPDX-License-Identifier: Apache-2.0 */
/* Tells compilers of loops that may be vectorised. */
#ifndef SDG_SRC_HOST_CUDNN_BASE_APART_H
#define SDG_SRC_HOST_CUDNN_BASE_APART_H

/* Put this before a loop whose iterations are independent. clang's counterpart
 * is not used because it warns of loops that it cannot vectorise. */
#ifdef __clang__
#define HOST_APART
#else
#define HOST_APART _Pragma("GCC ivdep")
#endif

#endif
