/* SPDX-License-Identifier: Apache-2.0 */
/* The control channel: the ranks of a job find each other, exchange small
 * records, and detect each other's deaths and failures.
 *
 * It carries no tensor data. Within a node, records go through shared memory
 * that no other user can open. Between nodes, each rank has a replica of that
 * memory, and TCP connections keep the replicas equal (src/control/tcp.h). */
#ifndef SDG_SRC_CONTROL_CONTROL_H
#define SDG_SRC_CONTROL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/channel.h"
#include "src/base/status.h"

typedef struct sdg_control sdg_control_t;

/* Joins the job as `rank` of `size`. `rendezvous` is "file:/path" (rank 0
 * makes a socket of mode 0600 there, and path.lock beside it) or
 * "tcp://host:port", where rank 0 listens; tcp needs SUNDOG_SECRET or
 * SUNDOG_SECRET_FILE. Blocks until all ranks have joined. `timeout_s`, which
 * may be a fraction, bounds this and every later wait. Size 1 needs no
 * rendezvous. A process joins one job of several ranks at a time. Errors:
 * SDG_E_RANK_TAKEN if another process (or this one) already joined as this
 * rank; SDG_E_DESCENDANT if that other process started this one, which must
 * then continue without sundog; SDG_E_JOIN_TIMEOUT, naming the missing ranks;
 * SDG_E_PEER_LOST, naming a rank that ended meanwhile; SDG_E_RENDEZVOUS if the
 * place cannot be used or the ranks have different sizes; SDG_E_SECRET if the
 * secret is missing or differs from the others'. */
sdg_status_t sdg_control_join(const char *rendezvous, int rank, int size,
                              double timeout_s,
                              sdg_control_t **out_control) SDG_MUST_CHECK;
/* For a job of one rank that was given a rendezvous: SDG_E_RENDEZVOUS if
 * another rank waits there, on this machine. */
sdg_status_t sdg_control_alone(const char *rendezvous) SDG_MUST_CHECK;

/* Leaves the job: when other ranks wait for this rank later, they report that
 * it ended. Other threads may still be in functions of `control`, which stays
 * valid. Does nothing in a child made by fork. */
void sdg_control_leave(sdg_control_t *control);
/* Call at once in a child made by fork, which is not a rank: closes what would
 * hide the parent's end. Does not wait or allocate. */
void sdg_control_forget(sdg_control_t *control);
/* Leaves the job and frees `control`; no other thread may be using it. In a
 * child made by fork it frees only the child's copy. */
void sdg_control_destroy(sdg_control_t *control);
int sdg_control_rank(const sdg_control_t *control);
int sdg_control_size(const sdg_control_t *control);

/* Exchanges records. Each rank in `ranks` (`count` of them, ascending, self
 * included) contributes `bytes` <= SDG_CHANNEL_RECORD_BYTES bytes. out_all[i]
 * (SDG_CHANNEL_RECORD_BYTES long) and out_bytes[i] receive the record of
 * ranks[i]; after an error their contents are undefined. Collective over
 * `ranks`; within a channel all ranks make their exchanges in the same order.
 * A rank takes part in at most SDG_SHM_LANES (8) different groups per channel.
 * One thread at a time per channel; different channels are independent. `what`
 * ("call 12 cudnnConvolutionForward") names the call in messages. Errors,
 * within the timeout: SDG_E_PEER_LOST (a rank died or left),
 * SDG_E_PEER_TIMEOUT (a rank stalls), SDG_E_DIVERGED (while this rank waits, a
 * peer's count of tagged calls exceeds ours; detected within 100 ms), and
 * SDG_E_PEER_FAILED with the text that a peer reported by sdg_control_fail;
 * SDG_E_INTERNAL for arguments out of range. A failure between ranks is posted
 * to the whole job: current and later exchanges and checks of the other ranks
 * end with the same code. After 30 s or half the timeout, whichever is less, a
 * log line names the awaited ranks. Time during which this process was stopped
 * does not count. */
sdg_status_t sdg_control_exchange(sdg_control_t *control, int channel,
                                  const int *ranks, int count, const void *mine,
                                  size_t bytes,
                                  char (*out_all)[SDG_CHANNEL_RECORD_BYTES],
                                  size_t *out_bytes,
                                  const char *what) SDG_MUST_CHECK;

/* One record of each rank of a group, and its size. */
typedef struct sdg_records {
  char (*data)[SDG_CHANNEL_RECORD_BYTES];
  size_t *bytes;
} sdg_records_t;
/* The same, but the records are of malloc; sdg_records_free frees them, also
 * after an error. SDG_E_NO_MEMORY. */
sdg_status_t sdg_control_gather(sdg_control_t *control, int channel,
                                const int *ranks, int count, const void *mine,
                                size_t bytes, const char *what,
                                sdg_records_t *out) SDG_MUST_CHECK;
void sdg_records_free(sdg_records_t *records);

/* Publishes that this rank is at its n-th tagged call on `channel`, before any
 * exchange of that call. Costs some stores and no system call. One thread at a
 * time per channel. `what`: the entry's name, or "call 12 ..."; 95 bytes are
 * kept. */
void sdg_control_count(sdg_control_t *control, int channel, uint64_t calls,
                       const char *what);
/* Returns a rank's count of calls. out_what (may be NULL) receives its current
 * call. */
uint64_t sdg_control_count_of(const sdg_control_t *control, int channel,
                              int rank, char *out_what, size_t what_bytes);

/* Publishes that the n-th op of this rank on `channel` has `hash`, and
 * compares it with the n-th op of each of the `count` ranks in `peers`. Each
 * half of a hash is compared by itself; a half that is 0 equals any. A peer
 * is compared only if it has reached its n-th op and is less than
 * SDG_SHM_STEPS (1024) ops further. If two ranks differ, at least the later
 * one sees it. Between nodes both see it, about 100 ms later, at their next
 * step or wait. Returns the first rank that differs, or -1. Makes no system
 * call and does not wait. One thread at a time. */
int sdg_control_step(sdg_control_t *control, int channel, uint32_t number,
                     uint32_t hash, const int *peers, int count);
/* Compares all ops together at the end: their number and one hash over them.
 * At least the last rank that calls this sees a difference. *out_number is the
 * number of ops of the rank that differs. Between nodes it waits at most two
 * seconds for the others' answers. */
int sdg_control_steps_end(sdg_control_t *control, int channel, uint32_t number,
                          uint32_t hash, const int *peers, int count,
                          uint32_t *out_number);

/* Tells every rank that this one failed, and why; the first report of a job
 * wins. `text`: sdg_last_error() or the details alone. Waits and checks of
 * other ranks end with SDG_E_PEER_FAILED and this text; with `status` itself
 * if it is a failure between ranks (PEER_LOST, PEER_TIMEOUT, DIVERGED). */
void sdg_control_fail(sdg_control_t *control, sdg_status_t status,
                      const char *text);

/* Returns SDG_OK while there is no failure; SDG_E_PEER_LOST if a rank died
 * without leaving (a rank that left is no failure while nobody waits for it);
 * else the job's failure, as described above. For the watchdog: does not wait,
 * takes some microseconds. Thread-safe. Calls sdg_fail only if `report` is
 * set. */
sdg_status_t sdg_control_check(sdg_control_t *control,
                               int report) SDG_MUST_CHECK;

/* Returns how `rank` ended: 0 if it has not, SDG_CONTROL_LEFT or
 * SDG_CONTROL_DIED. Takes some microseconds. Thread-safe. */
enum { SDG_CONTROL_LEFT = 1, SDG_CONTROL_DIED = 2 };
int sdg_control_ended(const sdg_control_t *control, int rank);
/* Returns the same as words for messages: "ended", "died", "cannot be reached
 * any more". */
const char *sdg_control_end_word(const sdg_control_t *control, int rank);

/* For messages: returns true if a signal or a debugger has stopped the process
 * of `rank`; false if that is not visible from here. */
bool sdg_control_stopped(const sdg_control_t *control, int rank);

#endif
