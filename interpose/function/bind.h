/* SPDX-License-Identifier: Apache-2.0 */
/* Redirects calls of a function that has no stub. Inside this folder only. */
#ifndef SDG_INTERPOSE_FUNCTION_BIND_H
#define SDG_INTERPOSE_FUNCTION_BIND_H

#include "src/base/status.h"

/* From now on calls of `name` in objects that are loaded now go to `code` if
 * the linker binds them to `real`, and so do addresses of the function that an
 * object's data begin with. SDG_E_FUNCTION_UNSEEN if the system forbids it. */
sdg_status_t sdg_function_bind(const char *name, void *real,
                               void *code) SDG_MUST_CHECK;

#endif
