// SPDX-License-Identifier: Apache-2.0
// One exchange of records between ranks: publish, wait, and check the ranks
// whose records are missing.
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/hash.h"
#include "src/base/log.h"
#include "src/base/stopwatch.h"
#include "src/bootstrap/shm.h"
#include "src/control/control.h"
#include "src/control/parted.h"
#include "src/control/state.h"
#include "src/control/thread_name.h"

enum { PAUSES = 64, YIELDS = 200, WARNING_SECONDS = 30 };

static uint64_t calls_of(const sdg_control_t *control, int channel, int rank) {
  return atomic_load_explicit(
      &control->view.shared->rank[rank].channel[channel].calls,
      memory_order_acquire);
}

// Writes "call 12 cudnnConvolutionForward", also if the caller published only
// the entry's name.
static void where_is(const sdg_control_t *control, int channel, int rank,
                     char *out, size_t bytes) {
  char what[SDG_SHM_WHAT_BYTES];
  uint64_t calls =
      sdg_control_count_of(control, channel, rank, what, sizeof what);
  const char *stopped =
      sdg_control_stopped(control, rank) ? ", stopped by a signal" : "";
  char label[48];
  sdg_thread_name_label(control, channel, label, sizeof label);
  if (calls == 0)
    snprintf(out, bytes, "before its first tagged call%s%s", label, stopped);
  else if (strncmp(what, "call ", 5) == 0)
    snprintf(out, bytes, "at %s%s", what, stopped);
  else
    snprintf(out, bytes, "at call %llu %s%s%s", (unsigned long long)calls, what,
             label, stopped);
}

// One exchange in progress.
typedef struct gather {
  sdg_control_t *control;
  int channel;
  const int *ranks;
  int count;
  uint64_t group;  // hash of the ranks
  uint32_t number; // number of this exchange within the group
  const char *what;
  sdg_stopwatch_t watch; // started at the first sleep
  uint64_t looked_ns;    // time of the last check of the peers
  int warned;
} gather_t;

static sdg_shm_channel_t *channel_of(const gather_t *m, int rank) {
  return &m->control->view.shared->rank[rank].channel[m->channel];
}

// Returns the lane that `rank` uses for the group; -1 if it has none yet.
static int lane_of(const gather_t *m, int rank) {
  const sdg_shm_channel_t *peer = channel_of(m, rank);
  for (int lane = 0; lane < SDG_SHM_LANES; lane++)
    if (atomic_load_explicit(&peer->group[lane], memory_order_acquire) ==
        m->group)
      return lane;
  return -1;
}

// Returns how many exchanges of the group `rank` has published after our
// previous one: 0, 1 (ours), or 2 (ours and the next). It cannot publish more.
static uint32_t progress_of(const gather_t *m, int rank) {
  int lane = lane_of(m, rank);
  return lane < 0 ? 0
                  : atomic_load_explicit(&channel_of(m, rank)->number[lane],
                                         memory_order_acquire) -
                        (m->number - 1);
}

static int has_published(const gather_t *m, int rank) {
  return progress_of(m, rank) != 0;
}

// Lists the missing ranks, "rank 2 (at call 11 cudnnPoolingForward), rank 3
// (...)", and the ranks stopped by a signal, which may block the transfers of
// the missing ones. Returns false if none is missing.
static bool missing_text(const gather_t *m, char *out, size_t bytes) {
  size_t used = 0;
  bool any = false;
  out[0] = '\0';
  for (int i = 0; i < m->count && used < bytes - 1; i++) {
    char where[256];
    bool here = has_published(m, m->ranks[i]);
    any |= !here;
    if (here && (m->ranks[i] == m->control->rank ||
                 !sdg_control_stopped(m->control, m->ranks[i])))
      continue;
    where_is(m->control, m->channel, m->ranks[i], where, sizeof where);
    int n = snprintf(out + used, bytes - used, "%srank %d (%s)",
                     used ? ", " : "", m->ranks[i], where);
    used += n < 0 ? 0 : (size_t)n;
  }
  return any;
}

// Whether a rank has made the op after this rank's last one, and so has passed
// where this rank waits.
static bool has_passed(const gather_t *m, int rank) {
  const sdg_shm_rank_t *ranks = m->control->view.shared->rank;
  uint32_t next =
      atomic_load_explicit(&ranks[m->control->rank].channel[m->channel].steps,
                           memory_order_relaxed) +
      1;
  return atomic_load(
             &ranks[rank].channel[m->channel].step[next % SDG_SHM_STEPS]) >>
             32 ==
         next;
}

// Checks a rank that we wait for. Its state counts only if its record is still
// missing *after* the state was read: a rank publishes its record before it
// continues, so whoever sees that it continued, left or died also sees its
// record.
static sdg_status_t peer_look(const gather_t *m, int rank) {
  const sdg_shm_view_t *view = &m->control->view;
  int self = m->control->rank;
  char where[256];
  uint64_t theirs = calls_of(m->control, m->channel, rank);
  uint64_t ours = calls_of(m->control, m->channel, self);
  bool passed = has_passed(m, rank);
  int left = sdg_shm_state(view, rank) == SDG_SHM_LEFT;
  int lost = !left && !sdg_shm_alive(view, rank);
  // It left between the two checks: it did not die.
  if (lost && sdg_shm_state(view, rank) == SDG_SHM_LEFT) {
    left = 1;
    lost = 0;
  }
  if (has_published(m, rank) || !(left || lost || theirs > ours || passed))
    return SDG_OK;
  // If a rank posted a failure, that is why it left.
  SDG_TRY(sdg_shm_failure(view, self, 1));
  where_is(m->control, m->channel, rank, where, sizeof where);
  if (theirs > ours)
    return sdg_shm_fail(view, self, SDG_E_DIVERGED,
                        "rank %d is %s while rank %d waits for it at %s", rank,
                        where, self, m->what);
  if (passed)
    return sdg_shm_fail(
        view, self, SDG_E_DIVERGED,
        "rank %d is %s and did not wait there, while rank %d waits for it at "
        "%s: one of the two has just set a descriptor of this call, for the "
        "first time or again, and the other has not",
        rank, where, self, m->what);
  char parted[160] = "";
  if (left)
    sdg_parted_format(parted, sizeof parted);
  return sdg_shm_fail(view, self, SDG_E_PEER_LOST,
                      "rank %d %s %s while rank %d waits for it at %s%s", rank,
                      left ? "ended" : sdg_shm_end_word(view, rank), where,
                      self, m->what, parted);
}

// A waiting thread calls this at intervals.
static sdg_status_t peers_look(gather_t *m) {
  const sdg_shm_view_t *view = &m->control->view;
  int self = m->control->rank;
  double timeout_s = m->control->timeout_s;
  char missing[512];
  SDG_TRY(sdg_shm_failure(view, self, 1));
  for (int i = 0; i < m->count; i++)
    if (!has_published(m, m->ranks[i]))
      SDG_TRY(peer_look(m, m->ranks[i]));
  double waited_s = sdg_stopwatch_read(&m->watch);
  double warning_s =
      timeout_s / 2 < WARNING_SECONDS ? timeout_s / 2 : WARNING_SECONDS;
  if (waited_s < (m->warned ? timeout_s : warning_s))
    return SDG_OK;
  if (!missing_text(m, missing, sizeof missing))
    return SDG_OK;
  if (waited_s >= timeout_s)
    return sdg_shm_fail(view, self, SDG_E_PEER_TIMEOUT,
                        "rank %d waited %.3g s at %s for %s", self, waited_s,
                        m->what, missing);
  m->warned = 1;
  sdg_log("has waited %.3g s at %s for %s", waited_s, m->what, missing);
  return SDG_OK;
}

static inline void cpu_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Waits for the record of `rank`: first spins, then yields the core (there may
// be more ranks than cores), then sleeps.
static sdg_status_t record_wait(gather_t *m, int rank) {
  sdg_shm_channel_t *peer = channel_of(m, rank);
  for (int i = 0; i < PAUSES; i++) {
    if (has_published(m, rank))
      return SDG_OK;
    cpu_pause();
  }
  for (int i = 0; i < YIELDS; i++) {
    if (has_published(m, rank))
      return SDG_OK;
    sched_yield();
  }
  if (m->looked_ns == 0) {
    m->watch = sdg_stopwatch_start();
    m->looked_ns = m->watch.last_ns;
  }
  while (!has_published(m, rank)) {
    uint32_t seen = atomic_load(&peer->published);
    atomic_fetch_add(&peer->sleepers, 1);
    if (!has_published(m, rank))
      sdg_shm_sleep(&peer->published, seen);
    atomic_fetch_sub(&peer->sleepers, 1);
    uint64_t now_ns = sdg_monotonic_ns();
    if (now_ns - m->looked_ns < 40 * 1000000u)
      continue;
    m->looked_ns = now_ns;
    SDG_TRY(peers_look(m));
  }
  return SDG_OK;
}

static uint64_t group_hash(const int *ranks, int count) {
  uint64_t hash = SDG_HASH_SEED;
  for (int i = 0; i < count; i++)
    hash = sdg_hash_word(hash, (uint64_t)ranks[i]);
  return hash | 1;
}

static sdg_status_t arguments_check(const sdg_control_t *control, int channel,
                                    const int *ranks, int count, size_t bytes) {
  int member = 0, ascending = count > 0 && count <= control->size;
  for (int i = 0; ascending && i < count; i++) {
    ascending = ranks[i] >= 0 && ranks[i] < control->size &&
                (i == 0 || ranks[i] > ranks[i - 1]);
    member = member || ranks[i] == control->rank;
  }
  if (!ascending || !member || channel < 0 || channel >= SDG_CHANNELS ||
      bytes > SDG_CHANNEL_RECORD_BYTES)
    return sdg_fail(
        SDG_E_INTERNAL, "exchange of %zu bytes on channel %d by %d ranks%s",
        bytes, channel, count,
        ascending && member ? "" : ", which do not ascend or lack this rank");
  if (atomic_load(&control->left) || control->owner != getpid())
    return sdg_fail(SDG_E_INTERNAL, "an exchange before this rank has joined");
  return SDG_OK;
}

// Copies the record of `rank` out of shared memory.
static sdg_status_t record_read(const gather_t *m, int rank, char *out,
                                size_t *out_bytes) {
  int lane = lane_of(m, rank);
  const sdg_shm_record_t *record =
      &channel_of(m, rank)->record[lane < 0 ? 0 : lane][m->number % 2];
  uint32_t bytes = record->bytes, progress = progress_of(m, rank);
  if (lane < 0 || bytes > SDG_CHANNEL_RECORD_BYTES || progress > 2)
    return sdg_shm_fail(&m->control->view, m->control->rank, SDG_E_INTERNAL,
                        "record of %u bytes, progress %u, of rank %d at %s",
                        bytes, progress, rank, m->what);
  memcpy(out, record->data, bytes);
  *out_bytes = bytes;
  return SDG_OK;
}

// Two buffers per lane suffice. Rank r writes record n of a group over its
// record n-2. It does so after it completed exchange n-1; for that it read
// record n-1 of every member. A member publishes n-1 after it completed n-2,
// that is after it read record n-2 of r. So no rank still reads what r
// overwrites, and each step of this chain is a release store seen by an
// acquire load.
static sdg_status_t exchange(gather_t *m, int lane, const void *mine,
                             size_t bytes,
                             char (*out_all)[SDG_CHANNEL_RECORD_BYTES],
                             size_t *out_bytes) {
  sdg_control_t *control = m->control;
  sdg_shm_channel_t *own = channel_of(m, control->rank);
  sdg_shm_record_t *record = &own->record[lane][m->number % 2];
  SDG_TRY(sdg_shm_failure(&control->view, control->rank, 1));
  record->bytes = (uint32_t)bytes;
  if (bytes)
    memcpy(record->data, mine, bytes);
  sdg_shm_mask_set(own->members[lane], m->ranks, m->count);
  // Store the group first: the TCP thread sends it together with each record
  // that has been counted.
  atomic_store_explicit(&own->group[lane], m->group, memory_order_release);
  atomic_store_explicit(&own->number[lane], m->number, memory_order_release);
  // Sequentially consistent, as are the sleeper's accesses to the two words:
  // either the sleeper sees the new count or this thread sees the sleeper.
  atomic_fetch_add(&own->published, 1);
  if (atomic_load(&own->sleepers) != 0)
    sdg_shm_wake(&own->published);
  sdg_shm_ring(&control->view);
  for (int i = 0; i < m->count; i++) {
    SDG_TRY(record_wait(m, m->ranks[i]));
    SDG_TRY(record_read(m, m->ranks[i], out_all[i], &out_bytes[i]));
  }
  return SDG_OK;
}

sdg_status_t sdg_control_exchange(sdg_control_t *control, int channel,
                                  const int *ranks, int count, const void *mine,
                                  size_t bytes,
                                  char (*out_all)[SDG_CHANNEL_RECORD_BYTES],
                                  size_t *out_bytes, const char *what) {
  SDG_TRY(arguments_check(control, channel, ranks, count, bytes));
  sdg_control_channel_t *own = &control->channel[channel];
  if (atomic_flag_test_and_set_explicit(&own->busy, memory_order_acquire))
    return sdg_fail(SDG_E_INTERNAL, "two threads on channel %d at %s", channel,
                    what);
  sdg_status_t status;
  gather_t m = {.control = control,
                .channel = channel,
                .ranks = ranks,
                .count = count,
                .group = group_hash(ranks, count),
                .what = what};
  int lane = 0;
  while (lane < SDG_SHM_LANES && own->group[lane] &&
         own->group[lane] != m.group)
    lane++;
  if (lane == SDG_SHM_LANES) {
    status = sdg_fail(SDG_E_INTERNAL,
                      "more than %d groups of ranks on channel %d, at %s",
                      SDG_SHM_LANES, channel, what);
  } else {
    own->group[lane] = m.group;
    m.number = own->exchanges[lane] + 1;
    status = exchange(&m, lane, mine, bytes, out_all, out_bytes);
    // After a failure the number stays the same, but the job has failed for
    // good: every later exchange ends with the posted failure.
    if (status == SDG_OK)
      own->exchanges[lane]++;
  }
  atomic_flag_clear_explicit(&own->busy, memory_order_release);
  return status;
}
