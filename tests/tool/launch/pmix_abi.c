// SPDX-License-Identifier: Apache-2.0
// Compares sundog's declarations of PMIx with those of <pmix.h>, when compiled
// and, for texts, when run.
#include <pmix.h>
#include <stdio.h>
#include <string.h>

#include "interpose/helper/pmix_abi.h"

#define SAME_SIZE(type, other)                                                 \
  _Static_assert(sizeof(type) == sizeof(other), #type)
#define SAME_PLACE(type, member, other, others)                                \
  _Static_assert(offsetof(type, member) == offsetof(other, others), #member)
#define SAME_NUMBER(number, other) _Static_assert((number) == (other), #number)

SAME_SIZE(px_proc_t, pmix_proc_t);
SAME_PLACE(px_proc_t, space, pmix_proc_t, nspace);
SAME_PLACE(px_proc_t, rank, pmix_proc_t, rank);
SAME_SIZE(px_value_t, pmix_value_t);
SAME_PLACE(px_value_t, type, pmix_value_t, type);
SAME_PLACE(px_value_t, data, pmix_value_t, data);
SAME_SIZE(((px_value_t *)0)->type, pmix_data_type_t);
SAME_SIZE(px_info_t, pmix_info_t);
SAME_PLACE(px_info_t, key, pmix_info_t, key);
SAME_PLACE(px_info_t, flags, pmix_info_t, flags);
SAME_PLACE(px_info_t, value, pmix_info_t, value);
SAME_SIZE(pmix_status_t, int);
SAME_SIZE(pmix_scope_t, uint8_t);
SAME_NUMBER(PX_OK, PMIX_SUCCESS);
SAME_NUMBER(PX_TIMEOUT, PMIX_ERR_TIMEOUT);
SAME_NUMBER(PX_PARTIAL, PMIX_ERR_PARTIAL_SUCCESS);
SAME_NUMBER(PX_BOOL, PMIX_BOOL);
SAME_NUMBER(PX_STRING, PMIX_STRING);
SAME_NUMBER(PX_INT, PMIX_INT);
SAME_NUMBER(PX_UINT16, PMIX_UINT16);
SAME_NUMBER(PX_UINT32, PMIX_UINT32);
SAME_NUMBER(PX_GLOBAL, PMIX_GLOBAL);
SAME_NUMBER(PX_RANK_ALL, PMIX_RANK_WILDCARD);

int main(void) {
  const char *const names[][2] = {
      {PX_JOB_SIZE, PMIX_JOB_SIZE},     {PX_LOCAL_SIZE, PMIX_LOCAL_SIZE},
      {PX_LOCAL_RANK, PMIX_LOCAL_RANK}, {PX_NODES, PMIX_NUM_NODES},
      {PX_COLLECT, PMIX_COLLECT_DATA},  {PX_TIME_LIMIT, PMIX_TIMEOUT}};
  int different = 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(names[i][0], names[i][1]) != 0) {
      printf("%s is not %s\n", names[i][0], names[i][1]);
      different = 1;
    }
  return different;
}
