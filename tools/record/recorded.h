/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded run: what the ranks left in the folder of `--record FOLDER`. */
#ifndef SDG_TOOLS_RECORD_RECORDED_H
#define SDG_TOOLS_RECORD_RECORDED_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/status.h"
#include "src/geometry/mesh.h"
#include "src/observe/phase_record.h"

enum { RECORDED_NAME_BYTES = 96 };

/* A call of one thread of a rank, or a transfer that a call without a section
 * caused. Times are in nanoseconds of CLOCK_MONOTONIC of rank 0's host. */
typedef struct recorded_call {
  int64_t number; /* from 1 in each thread; 0: an update */
  int thread;
  int kind; /* index of recorded_t.kind */
  int plan; /* index of recorded_rank_t.plan; -1: none; of an update: the plan
             * of the call that caused it: in full, or with a result that was
             * completed at once */
  bool failed;
  bool captured;          /* into a CUDA graph: it moved nothing itself */
  int64_t at_ns, took_ns; /* on the host */
  int64_t agreed_ns;      /* the part of it that waited for other ranks */
  int64_t received_bytes, sum_bytes, copied_bytes;
  /* On the program's stream; 0: not recorded. */
  int64_t device_at_ns, device_took_ns, wait_ns;
  int64_t x, y; /* addresses: of a convolution's first input, 0: another call;
                 * of the first output */
  int64_t real_ns; /* the longest run of the real function: not of a strip */
} recorded_call_t;

typedef struct recorded_phase {
  int64_t at_ns, took_ns, call;
  int thread;
  sdg_phase_t phase;
} recorded_phase_t;

typedef struct recorded_plan {
  json_t *line; /* owned */
  int64_t number;
  int64_t calls;         /* of this rank */
  int64_t formula_bytes; /* of one call (formula.h); -1: no formula */
} recorded_plan_t;

typedef struct recorded_rank {
  int rank;
  json_t *facts;    /* of the process; owned; never NULL */
  json_t *totals;   /* counted at exit; owned; NULL: none was left */
  bool own_clock;   /* its host's clock is not that of the first rank's */
  int64_t shift_ns; /* then it is added to all times */
  int plans, calls, phases;
  recorded_plan_t *plan;
  recorded_call_t *call;   /* in the order of their ends */
  recorded_phase_t *phase; /* in the order of their begins */
  int plan_room, call_room, phase_room;
  int64_t broken; /* lines that cannot be read */
  bool full;      /* later calls were not recorded */
  bool strange;   /* there are totals, of another process: not in `totals` */
} recorded_rank_t;

/* One kind of call: an entry, a section of the rules and a strategy. */
typedef struct recorded_kind {
  char entry[RECORDED_NAME_BYTES], rule[RECORDED_NAME_BYTES], strategy[32];
} recorded_kind_t;

typedef struct recorded {
  char *folder;
  int ranks; /* of the job */
  int found; /* ranks with a record: rank[0 ... found - 1], ascending */
  recorded_rank_t *rank;
  int kinds, kind_room;
  recorded_kind_t *kind;
  int64_t begin_ns, end_ns; /* of all calls */
} recorded_t;

/* Reads the record. SDG_E_FILE_IO if the folder has none, or one of a version
 * that recorded no times. Lines that cannot be read are counted. */
sdg_status_t recorded_read(const char *folder, recorded_t *out) SDG_MUST_CHECK;
void recorded_fini(recorded_t *run);

/* Removes the record of an earlier run from the folder, so that a new one does
 * not mix with it. */
void recorded_clear(const char *folder);

/* Whether `path` names a file of a record in `folder`, which may not exist. */
bool recorded_owns(const char *folder, const char *path);

/* Returns the index of a kind, new or known; -1 if memory runs out. */
int recorded_kind(recorded_t *run, const char *entry, const char *rule,
                  const char *strategy);

/* Members of JSON objects: "" and 0 if they are missing. */
const char *recorded_text(const json_t *object, const char *name);
int64_t recorded_number(const json_t *object, const char *name);

#endif
