// SPDX-License-Identifier: Apache-2.0
// The table of exit statuses, and the exit status of each failure.
#include "tools/launch/exits.h"

#include <stddef.h>

static const struct {
  int number;
  const char *text;
} exits[] = {
#define SDG_EXIT(name, number, text) {number, text},
#include "tools/launch/exits.def"
#undef SDG_EXIT
};

const char *command_exit_text(int index, int *out_number) {
  if (index < 0 || index >= (int)(sizeof exits / sizeof *exits))
    return NULL;
  *out_number = exits[index].number;
  return exits[index].text;
}

int command_exit(sdg_status_t status) {
  switch (status) {
  case SDG_OK:
    return COMMAND_OK;
  case SDG_E_NO_MEMORY:
    return COMMAND_SYSTEM;
  case SDG_E_INTERNAL:
    return COMMAND_INTERNAL;
  case SDG_E_USAGE:
  case SDG_E_MESH:
  case SDG_E_PARTS: // of --mesh and --parts
    return COMMAND_USAGE;
  case SDG_E_FILE_IO:
  case SDG_E_RULES_FILE:
    return COMMAND_FILE;
  case SDG_E_NPY_FORMAT:
  case SDG_E_PIECES:
  case SDG_E_EXTENTS:
    return COMMAND_DATA;
  case SDG_E_OVERWRITE:
    return COMMAND_CREATE;
  case SDG_E_INSTALL:
    return COMMAND_MISSING;
  default:
    return status >= SDG_E_MESH && status <= SDG_E_VIEW_WHOLE ? COMMAND_CONFIG
                                                              : COMMAND_REFUSED;
  }
}

int command_exit_run(sdg_status_t status) {
  return status == SDG_OK        ? COMMAND_OK
         : status == SDG_E_USAGE ? COMMAND_USAGE
                                 : COMMAND_REFUSED;
}
