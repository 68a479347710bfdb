/* SPDX-License-Identifier: Apache-2.0 */
/* The part of PMIx's binary interface that sundog-pmix uses, so that it can be
 * built without PMIx and load any libpmix.so.2 of version 3 or later.
 * tests/tool/launch/pmix_abi.c compares it with <pmix.h>. */
#ifndef SDG_INTERPOSE_HELPER_PMIX_ABI_H
#define SDG_INTERPOSE_HELPER_PMIX_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  PX_OK = 0,
  PX_TIMEOUT = -24,
  /* A process that had been a client of this rank before has gone. */
  PX_PARTIAL = -52,
  PX_BOOL = 1,
  PX_STRING = 3,
  PX_INT = 6,
  PX_UINT16 = 13,
  PX_UINT32 = 14,
  PX_GLOBAL = 3,
};
#define PX_RANK_ALL   (UINT32_MAX - 1)
#define PX_JOB_SIZE   "pmix.job.size"
#define PX_LOCAL_SIZE "pmix.local.size"
#define PX_LOCAL_RANK "pmix.lrank"
#define PX_NODES      "pmix.num.nodes"
#define PX_COLLECT    "pmix.collect"
#define PX_TIME_LIMIT "pmix.timeout"

typedef struct px_proc {
  char space[256];
  uint32_t rank;
} px_proc_t;

typedef struct px_value {
  uint16_t type;
  union {
    bool flag;
    char *text;
    int integer;
    uint16_t u16;
    uint32_t u32;
    uint64_t room[3];
  } data;
} px_value_t;

typedef struct px_info {
  char key[512];
  uint32_t flags;
  px_value_t value;
} px_info_t;

typedef void px_done_t(int status, void *data);

#endif
