/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the files of sundog, in the build folder or installed. */
#ifndef SDG_TOOLS_PROGRAM_INSTALL_H
#define SDG_TOOLS_PROGRAM_INSTALL_H

#include <limits.h>

#include "src/base/status.h"

typedef struct install {
  char library[PATH_MAX]; /* libsundog.so, absolute */
  char
      host[PATH_MAX]; /* folder of the host device's libraries; "" if missing */
  char host12[PATH_MAX]; /* folder of those with CUDA 12's names; "" if missing
                          */
  char helper[PATH_MAX]; /* sundog-libraries; "" if missing */
  char pmix[PATH_MAX];   /* sundog-pmix; "" if missing */
} install_t;

/* Looks beside the running command. SDG_E_INSTALL if libsundog.so is missing.
 * */
sdg_status_t install_find(install_t *out_install) SDG_MUST_CHECK;

#endif
