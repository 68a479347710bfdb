/* SPDX-License-Identifier: Apache-2.0 */
/* The report: what this rank did per kind of call; counted during calls,
 * written at exit for `sundog run`. */
#ifndef SDG_SRC_OBSERVE_REPORT_H
#define SDG_SRC_OBSERVE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/status.h"
#include "src/plan/plan.h"

/* A row of the report. One kind of tagged call is one entry, rule section and
 * strategy. */
typedef struct sdg_report_row sdg_report_row_t;

/* Returns the calling thread's row of this kind, created at first use; NULL if
 * memory runs out. The strings must live as long as the process. */
sdg_report_row_t *sdg_report_find(const char *entry, const char *section,
                                  const char *strategy);
/* Says of which family of ops the calls of a row are; row may be NULL. */
void sdg_report_family(sdg_report_row_t *row, const char *family);
/* Counts one tagged call and the bytes that its plan moves; row may be NULL,
 * plan may be NULL (a query). */
void sdg_report_count(sdg_report_row_t *row, const sdg_plan_t *plan);
/* Counts a call that is not tagged but causes transfers; row may be NULL. */
void sdg_report_update(sdg_report_row_t *row);
/* Adds bytes of a plan to a call that is already counted: everything it moves;
 * what it receives; what it copies. row may be NULL. */
void sdg_report_moved(sdg_report_row_t *row, const sdg_plan_t *plan);
void sdg_report_received(sdg_report_row_t *row, const sdg_plan_t *plan);
/* What captured calls of a row move at each launch of their graph. */
typedef struct sdg_report_moves {
  sdg_report_row_t *row; /* or NULL */
  int64_t calls, received_bytes, sum_bytes;
  int64_t axis_bytes[SDG_AXES_MAX], copied_bytes[SDG_COPY_COUNT];
} sdg_report_moves_t;
void sdg_report_moves_add(sdg_report_moves_t *io, const sdg_plan_t *plan);
/* Counts calls that a launch makes, and what they move, in a row of their own,
 * whose strategy is "replay". */
void sdg_report_launched(const sdg_report_moves_t *moves);
/* Adds only the bytes of its reductions. */
void sdg_report_summed(sdg_report_row_t *row, const sdg_plan_t *plan);
void sdg_report_copied(sdg_report_row_t *row, const sdg_plan_t *plan);
/* Adds time during which the host waited for other ranks; during which a stream
 * of the program did. */
void sdg_report_wait(sdg_report_row_t *row, int64_t wait_ns);
void sdg_report_stream_wait(sdg_report_row_t *row, int64_t wait_ns);

/* What the calling thread has added to any row so far, without waits of
 * streams. */
typedef struct sdg_report_tally {
  int64_t received_bytes, sum_bytes, copied_bytes, wait_ns;
} sdg_report_tally_t;
sdg_report_tally_t sdg_report_tally_get(void);

/* Counts a comparison of values with the other ranks, made before a call: the
 * bytes read, and the time without waiting for the ranks. */
void sdg_report_compared(int64_t bytes, int64_t spent_ns);
/* Counts a call that sundog refused. If the option is set and the process has
 * not joined, it also writes <SUNDOG_REPORT>/failed-PID, with the thread's
 * last failure. */
void sdg_report_fail(void);
/* Counts a tagged call that every rank computes in full. */
void sdg_report_in_full(void);

/* What this process saw of the program, reported if nothing was tagged: calls
 * with tensors, calls that hide their tensors, calls of a process that is not
 * a rank. */
typedef enum sdg_saw {
  SDG_SAW_CALL,
  SDG_SAW_OPAQUE,
  SDG_SAW_STRANGER,
  SDG_SAW_COUNT,
} sdg_saw_t;
void sdg_report_saw(sdg_saw_t what);
/* Records a tensor that misses the rules' conditions by `misses`; only the
 * nearest one is kept. */
void sdg_report_near(int misses, const char *text);
/* Returns true if more such tensors are wanted: none after a call was
 * tagged. */
bool sdg_report_near_wanted(void);

/* Call when this process has joined: creates <SUNDOG_REPORT>/rank-R.json, if
 * the option is set, or rank-R-2.json ... if other processes were this rank
 * before. The file stays empty until sdg_report_write(), which is called at
 * exit. */
void sdg_report_begin(void);
/* The number of this process among those that were this rank in this run, one
 * after the other, from 1; 0: not known. */
int sdg_report_process(void);
/* `scratch_bytes`: device memory that sundog allocated for itself. Writes the
 * same to <SUNDOG_RECORD>/totals-R.json, if that option is set. */
void sdg_report_write(size_t scratch_bytes);
/* At exit: writes <SUNDOG_REPORT>/seen-PID.json if the option is set and the
 * process saw calls but tagged none; also if it never joined. */
void sdg_report_write_seen(void);

#endif
