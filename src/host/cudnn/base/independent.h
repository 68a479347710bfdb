/* SPDX-License-Identifier: Apache-2.0 */
/* Tells compilers of loops that may be vectorised. */
#ifndef SDG_SRC_HOST_CUDNN_BASE_INDEPENDENT_H
#define SDG_SRC_HOST_CUDNN_BASE_INDEPENDENT_H

/* Put this before a loop whose iterations are independent. clang's counterpart
 * is not used because it warns of loops that it cannot vectorise. */
#ifdef __clang__
#define HOST_INDEPENDENT
#else
#define HOST_INDEPENDENT _Pragma("GCC ivdep")
#endif

#endif
