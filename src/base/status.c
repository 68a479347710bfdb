// SPDX-License-Identifier: Apache-2.0
// Makes the table of failures available as data.
#include "src/base/status.h"

#include <stddef.h>

static const sdg_error_info_t errors[] = {
#define SDG_ERROR(number, name, vendor, summary, remedy)                       \
  {SDG_E_##name, SDG_VENDOR_##vendor, #name, summary, remedy},
#include "src/base/errors.def"
#undef SDG_ERROR
};

const sdg_error_info_t *sdg_error_at(unsigned index) {
  return index < sizeof errors / sizeof errors[0] ? &errors[index] : NULL;
}

const sdg_error_info_t *sdg_error_find(sdg_status_t status) {
  for (unsigned i = 0; i < sizeof errors / sizeof errors[0]; i++)
    if (errors[i].status == status)
      return &errors[i];
  return NULL;
}
