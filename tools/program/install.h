/* SPDX-License-Identifier: Apache-2.0 */
/* Where the files of sundog are, in the build folder and installed. */
#ifndef SDG_TOOLS_PROGRAM_INSTALL_H
#define SDG_TOOLS_PROGRAM_INSTALL_H

#include <limits.h>

#include "src/base/status.h"

typedef struct install {
  char library[PATH_MAX]; /* libsundog.so, absolute */
  char host[PATH_MAX];    /* folder of the host device's libraries; "" if it
                             is not there */
  char host12[PATH_MAX];  /* of those with CUDA 12's names; "" likewise */
  char helper[PATH_MAX];  /* sundog-libraries; "" likewise */
} install_t;

/* Looks beside the running command: SDG_E_INSTALL if libsundog.so is not
 * there. */
sdg_status_t install_find(install_t *out_install) SDG_MUST_CHECK;

#endif
