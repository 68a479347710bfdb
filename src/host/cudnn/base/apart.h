/* SPDX-License-Identifier: Apache-2.0 */
/* Tells compilers of loops that may be vectorised. */
#ifndef SDG_SRC_HOST_CUDNN_BASE_APART_H
#define SDG_SRC_HOST_CUDNN_BASE_APART_H

/* Before a loop of which no iteration reads what another writes. clang's
 * counterpart warns of loops that it cannot vectorise all the same. */
#ifdef __clang__
#define HOST_APART
#else
#define HOST_APART _Pragma("GCC ivdep")
#endif

#endif
