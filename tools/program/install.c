// SPDX-License-Identifier: Apache-2.0
// Finds the library and the host device relative to the running command.
#include "tools/program/install.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Library, host folder, two helpers and host folder of CUDA 12, relative to the
// command's folder: the build folder, then an installation that may have been
// moved as a whole.
static const char *const layouts[][5] = {
    {"../interpose/libsundog.so", "../src/host/lib",
     "../interpose/sundog-libraries", "../src/host/lib12",
     "../interpose/sundog-pmix"},
    {SUNDOG_BIN_TO_LIB "/libsundog.so", SUNDOG_BIN_TO_LIB "/sundog/host",
     SUNDOG_BIN_TO_LIB "/sundog/sundog-libraries",
     SUNDOG_BIN_TO_LIB "/sundog/host12",
     SUNDOG_BIN_TO_LIB "/sundog/sundog-pmix"},
};

sdg_status_t install_find(install_t *out_install) {
  char folder[PATH_MAX], path[2 * PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
  if (n < 0)
    return sdg_fail(SDG_E_INSTALL, "/proc/self/exe: %s", strerror(errno));
  folder[n] = '\0';
  *strrchr(folder, '/') = '\0';
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, layouts[i][0]);
    if (!realpath(path, out_install->library))
      continue;
    // An installed library's name is a link to its versioned name; both can be
    // preloaded.
    snprintf(path, sizeof path, "%s/%s", folder, layouts[i][1]);
    if (!realpath(path, out_install->host))
      out_install->host[0] = '\0';
    snprintf(path, sizeof path, "%s/%s", folder, layouts[i][2]);
    if (!realpath(path, out_install->helper))
      out_install->helper[0] = '\0';
    snprintf(path, sizeof path, "%s/%s", folder, layouts[i][3]);
    if (!realpath(path, out_install->host12))
      out_install->host12[0] = '\0';
    snprintf(path, sizeof path, "%s/%s", folder, layouts[i][4]);
    if (!realpath(path, out_install->pmix))
      out_install->pmix[0] = '\0';
    return SDG_OK;
  }
  return sdg_fail(SDG_E_INSTALL, "no libsundog.so beside %s", folder);
}
