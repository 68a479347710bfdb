// SPDX-License-Identifier: Apache-2.0
// Maps calling threads to the channels of the job's threads.
#include "src/job/thread.h"

#include <ctype.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/options.h"
#include "src/call/tag.h"
#include "src/control/thread_name.h"
#include "src/job/job.h"
#include "src/job/launch_order.h"

// One pointer only: thread-local storage is scarce in a preloaded library.
typedef struct self {
  int channel;                      // -1: no channel claimed
  char name[SDG_THREAD_NAME_BYTES]; // "": no name
} self_t;
static _Thread_local self_t *self __attribute__((tls_model("initial-exec")));
static pthread_key_t self_key;

static struct {
  pthread_mutex_t lock; // guards `taken`; held for a few instructions
  bool taken[SDG_CHANNEL_THREADS];
  bool entered[SDG_CHANNEL_THREADS]; // whether the channel's thread has entered
} channels = {.lock = PTHREAD_MUTEX_INITIALIZER};

// New threads without a name; one at a time agrees on its number. Lock order:
// before channels.lock.
static struct {
  pthread_mutex_t lock;
  int begun;                        // numbers given so far
  int channel[SDG_CHANNEL_THREADS]; // index: number
} order = {.lock = PTHREAD_MUTEX_INITIALIZER};

// The lock also makes the data of a channel visible to the next thread that
// takes it.
static bool channel_take(int channel) {
  pthread_mutex_lock(&channels.lock);
  bool free_one = !channels.taken[channel];
  channels.taken[channel] = true;
  pthread_mutex_unlock(&channels.lock);
  return free_one;
}

static bool channel_is_free(int channel) {
  pthread_mutex_lock(&channels.lock);
  bool free_one = !channels.taken[channel];
  pthread_mutex_unlock(&channels.lock);
  return free_one;
}

static void channel_release(self_t *of) {
  if (of->channel < 0)
    return;
  pthread_mutex_lock(&channels.lock);
  channels.taken[of->channel] = false;
  pthread_mutex_unlock(&channels.lock);
  of->channel = -1;
  sdg_channel_own = 0;
  sdg_channel_claimed = false;
}

static void self_destroy(void *of) {
  self = NULL;
  channel_release(of);
  free(of);
}

static void key_create(void) {
  pthread_key_create(&self_key, self_destroy);
}

static self_t *self_get(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (self)
    return self;
  pthread_once(&once, key_create);
  self_t *made = calloc(1, sizeof *made);
  if (!made || pthread_setspecific(self_key, made) != 0) {
    free(made);
    return NULL;
  }
  made->channel = -1;
  self = made;
  return self;
}

// Threads that get the same number on each rank are one thread of the job.
// Numbers of threads that have ended on every rank are given again. Which
// threads have ended depends on timing, so the ranks agree on it.
static sdg_status_t number_agree(const char *entry, int *out_number) {
  const sdg_group_t *group = sdg_job_group();
  unsigned free_here = 0;
  for (int i = 0; i < order.begun; i++)
    free_here |= (unsigned)channel_is_free(order.channel[i]) << i;
  unsigned free_on_all = free_here;
  if (group->count > 1) {
    sdg_records_t all;
    char what[128];
    snprintf(what, sizeof what, "the first tagged call of a further thread, %s",
             entry);
    sdg_status_t status = sdg_job_gather(SDG_CHANNEL_ORDER, &free_here,
                                         sizeof free_here, what, &all);
    for (int r = 0; r < group->count && status == SDG_OK; r++) {
      unsigned theirs = 0;
      memcpy(&theirs, all.data[r],
             all.bytes[r] < sizeof theirs ? all.bytes[r] : sizeof theirs);
      free_on_all &= theirs;
    }
    sdg_records_free(&all);
    if (status != SDG_OK)
      return sdg_job_fail(status);
  }
  int number = 0;
  while (number < order.begun && !(free_on_all >> number & 1))
    number++;
  *out_number = number;
  return SDG_OK;
}

static sdg_status_t ordered_claim(const char *entry, int *out_channel) {
  int number = 0;
  sdg_tag_share();
  if (order.begun > 0)
    SDG_TRY(number_agree(entry, &number));
  if (number == order.begun) {
    char name[SDG_THREAD_NAME_BYTES];
    // A name that no program can give.
    snprintf(name, sizeof name, "#%d", number);
    int channel = 0;
    if (number > 0)
      SDG_TRY(sdg_thread_name_find(sdg_job_control(), name, &channel));
    order.channel[order.begun++] = channel;
  }
  *out_channel = order.channel[number];
  (void)channel_take(*out_channel);
  return SDG_OK;
}

static sdg_status_t unnamed_claim(const char *entry, bool only,
                                  int *out_channel) {
  sdg_status_t status = SDG_OK;
  pthread_mutex_lock(&order.lock);
  *out_channel = 0;
  if (sdg_options_get()->threads == SDG_THREADS_ORDERED && !only)
    status = ordered_claim(entry, out_channel);
  else if (!channel_take(0))
    status = only
                 ? sdg_fail(SDG_E_VIEW_WHOLE, "a second thread calls %s", entry)
                 : sdg_fail(SDG_E_THREAD, "%s", entry);
  pthread_mutex_unlock(&order.lock);
  return status;
}

static sdg_status_t named_claim(const char *name, const char *entry,
                                int *out_channel) {
  SDG_TRY(sdg_thread_name_find(sdg_job_control(), name, out_channel));
  if (channel_take(*out_channel))
    return SDG_OK;
  return sdg_fail(SDG_E_THREAD_NAME,
                  "'%s' is the name of another living thread, at %s", name,
                  entry);
}

static sdg_status_t claim(const char *entry, bool only) {
  if (self && self->channel >= 0)
    return SDG_OK;
  self_t *me = self_get();
  if (!me)
    return sdg_fail(SDG_E_NO_MEMORY, "a thread");
  // Under SUNDOG_CHECK every call must be agreed on, and none may pass: ranks
  // name their threads at different times.
  if (sdg_options_get()->check)
    sdg_tag_share();
  int channel;
  if (me->name[0] && !only)
    SDG_TRY(named_claim(me->name, entry, &channel));
  else
    SDG_TRY(unnamed_claim(entry, only, &channel));
  me->channel = sdg_channel_own = channel;
  if (channel != 0 && !channels.entered[channel]) {
    sdg_status_t status = sdg_launch_order_enter(channel, entry);
    if (status != SDG_OK) {
      channel_release(me);
      return sdg_job_fail(status);
    }
    channels.entered[channel] = true;
  }
  sdg_channel_claimed = true;
  return SDG_OK;
}

sdg_status_t sdg_thread_claim(const char *entry) {
  return claim(entry, false);
}

sdg_status_t sdg_thread_claim_only(const char *entry) {
  return claim(entry, true);
}

static bool name_is_valid(const char *name) {
  size_t length = strlen(name);
  for (size_t i = 0; i < length; i++)
    if (!isascii((unsigned char)name[i]) ||
        (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i])))
      return false;
  return length > 0 && length < SDG_THREAD_NAME_BYTES;
}

sdg_status_t sdg_thread_set_name(const char *name) {
  if (name && !name_is_valid(name))
    return sdg_fail(
        SDG_E_THREAD_NAME,
        "'%.64s' is not a name of 1 to %d letters, digits, '.', '_', '-'", name,
        SDG_THREAD_NAME_BYTES - 1);
  self_t *me = self_get();
  if (!me)
    return sdg_fail(SDG_E_NO_MEMORY, "a thread");
  if (name)
    sdg_tag_share();
  if (strcmp(me->name, name ? name : "") == 0)
    return SDG_OK;
  channel_release(me);
  snprintf(me->name, sizeof me->name, "%s", name ? name : "");
  return SDG_OK;
}
