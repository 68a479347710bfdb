/* SPDX-License-Identifier: Apache-2.0 */
/* The control channel: ranks of a job find each other, tell each other small
 * things, and learn of each other's deaths and failures.
 *
 * It carries no tensor data. Within a node records go through shared memory
 * that no other user can open; between nodes each rank has a mirror of that
 * memory, and TCP connections keep the mirrors equal (src/control/tcp.h). */
#ifndef SDG_SRC_CONTROL_CONTROL_H
#define SDG_SRC_CONTROL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/channel.h"
#include "src/base/status.h"

typedef struct sdg_control sdg_control_t;

/* Joins the job as `rank` of `size`. `rendezvous` is "file:/path" (a socket
 * of mode 0600 is made there by rank 0, and path.lock beside it) or
 * "tcp://host:port", where rank 0 listens; that takes SUNDOG_SECRET or
 * SUNDOG_SECRET_FILE. Blocks until all ranks have joined; `timeout_s` bounds
 * this and every later wait, and may be a fraction. size 1 needs no rendezvous.
 * A process joins one job of several ranks at a time. Errors: SDG_E_RANK_TAKEN
 * when another process (or this one) already joined as this rank,
 * SDG_E_DESCENDANT where that one started this one, which is to go on without
 * sundog;
 * SDG_E_JOIN_TIMEOUT naming the ranks that are missing, SDG_E_PEER_LOST naming
 * one that ended meanwhile, SDG_E_RENDEZVOUS for a place that cannot be used or
 * ranks of another size, SDG_E_SECRET for a secret that is missing or not the
 * others'. */
sdg_status_t sdg_control_join(const char *rendezvous, int rank, int size,
                              double timeout_s,
                              sdg_control_t **out_control) SDG_MUST_CHECK;
/* Of one rank by itself that was told a rendezvous nevertheless:
 * SDG_E_RENDEZVOUS where another rank waits there, on this machine. */
sdg_status_t sdg_control_alone(const char *rendezvous) SDG_MUST_CHECK;

/* Leaves: later waits of others on this rank report that it ended. Other
 * threads may still be in functions of `control`, which stays valid. Nothing
 * in a child made by fork. */
void sdg_control_leave(sdg_control_t *control);
/* In a child made by fork, which is no rank, at once: lets go of what would
 * hide the parent's end. No wait, no allocation. */
void sdg_control_forget(sdg_control_t *control);
/* Leaves, and frees `control`, which no other thread may be using. In a child
 * made by fork it frees the child's copy only. */
void sdg_control_destroy(sdg_control_t *control);
int sdg_control_rank(const sdg_control_t *control);
int sdg_control_size(const sdg_control_t *control);

/* Every rank of `ranks` (count of them, ascending, self included) gives
 * `bytes` <= SDG_CHANNEL_RECORD_BYTES bytes; out_all[i] (each
 * SDG_CHANNEL_RECORD_BYTES long) and out_bytes[i] receive those of ranks[i];
 * after an error their contents are undefined.
 * Collective over `ranks`, in the same order on each of them within a channel;
 * a rank takes part in at most SDG_SHM_LANES (8) different groups per
 * channel. One thread at a time on a channel; different channels do not
 * disturb each other. `what` ("call 12 cudnnConvolutionForward") names the call
 * in messages.
 * Errors, within the timeout: SDG_E_PEER_LOST (a rank died or left),
 * SDG_E_PEER_TIMEOUT (stalls), SDG_E_DIVERGED (a peer's count of tagged calls
 * passed ours while we wait for it; seen within 100 ms), and SDG_E_PEER_FAILED
 * with whatever a peer reported by sdg_control_fail; SDG_E_INTERNAL for
 * arguments out of range. A failure between ranks is posted to the whole job:
 * the other ranks' exchanges and checks, in course or later, end with the same
 * code. A log line says who is waited for after 30 s or half the timeout,
 * whichever is less. Time in which this process was stopped does not count. */
sdg_status_t sdg_control_exchange(sdg_control_t *control, int channel,
                                  const int *ranks, int count, const void *mine,
                                  size_t bytes,
                                  char (*out_all)[SDG_CHANNEL_RECORD_BYTES],
                                  size_t *out_bytes,
                                  const char *what) SDG_MUST_CHECK;

/* Publishes that this rank is at its n-th tagged call on `channel`, before any
 * exchange of that call: some stores, no system call. One thread at a time on a
 * channel. `what`: the entry's name, or "call 12 ..."; 95 bytes are kept. */
void sdg_control_count(sdg_control_t *control, int channel, uint64_t calls,
                       const char *what);
/* The count of a rank, and (out_what, may be NULL) the call it is at. */
uint64_t sdg_control_count_of(const sdg_control_t *control, int channel,
                              int rank, char *out_what, size_t what_bytes);

/* Publishes that the n-th op that this rank carries out on `channel` is one
 * with `hash`, and compares with what `peers` (count ranks) carried out as
 * theirs, where they came there already and not SDG_SHM_STEPS (1024)
 * further: of two ranks that differ at least the later one sees it; between
 * nodes both do, some 100 ms later, at their next step or wait. Returns the
 * first rank that differs, or -1. No system call, no wait. One thread at a
 * time. */
int sdg_control_step(sdg_control_t *control, int channel, uint32_t number,
                     uint32_t hash, const int *peers, int count);
/* The same at the end, for all ops together: their number and one hash of
 * theirs. Of ranks that say it at least the last one sees a difference.
 * *out_number is what that rank has. Between nodes it waits for their answers,
 * two seconds at most. */
int sdg_control_steps_end(sdg_control_t *control, int channel, uint32_t number,
                          uint32_t hash, const int *peers, int count,
                          uint32_t *out_number);

/* Tells every rank that this one failed and why; the first report of a job
 * wins. `text`: sdg_last_error() or the details alone. Waits and checks of
 * other ranks end with SDG_E_PEER_FAILED and this text; with `status` itself
 * where that is a failure between ranks (PEER_LOST, PEER_TIMEOUT, DIVERGED). */
void sdg_control_fail(sdg_control_t *control, sdg_status_t status,
                      const char *text);

/* SDG_OK while all is well; SDG_E_PEER_LOST when a rank died without leaving
 * (one that left is no failure while nobody waits for it), else the job's
 * failure as above. Not a wait: for the watchdog, some microseconds.
 * Thread-safe. Reports (sdg_fail) only when `report` is set. */
sdg_status_t sdg_control_check(sdg_control_t *control,
                               int report) SDG_MUST_CHECK;

/* How `rank` ended: 0 it has not, SDG_CONTROL_LEFT by leaving, or
 * SDG_CONTROL_DIED. Some microseconds. Thread-safe. */
enum { SDG_CONTROL_LEFT = 1, SDG_CONTROL_DIED = 2 };
int sdg_control_ended(const sdg_control_t *control, int rank);
/* That as a word for messages: "ended", "died", "cannot be reached any more".
 */
const char *sdg_control_end_word(const sdg_control_t *control, int rank);

/* Whether `rank`'s process is stopped by a signal or a debugger, where that
 * can be seen: for messages. */
bool sdg_control_stopped(const sdg_control_t *control, int rank);

#endif
