/* SPDX-License-Identifier: Apache-2.0 */
/* The library of define.c. */
#ifndef SDG_TESTS_CLIENTS_DEFINE_SPREAD_H
#define SDG_TESTS_CLIENTS_DEFINE_SPREAD_H

typedef int spread_t(const float *u, float *w, int rows, int columns);
spread_t spread, spread_by_library;

#endif
