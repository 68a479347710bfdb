// SPDX-License-Identifier: Apache-2.0
// Exchanges values in host memory over the control channel.
#include "rules/view/whole/root_broadcast.h"

#include <stdlib.h>
#include <string.h>

#include "rules/memory/memory.h"
#include "rules/step/divergence.h"
#include "rules/view/whole/settle.h"
#include "src/exchange/exchange.h"
#include "src/job/job.h"
#include "src/job/thread.h"

// Replaces `bytes` bytes by the first rank's.
static sdg_status_t first_take(const char *entry_name, void *data,
                               size_t bytes) {
  const sdg_group_t *group = sdg_job_group();
  sdg_records_t all = {.data = NULL};
  sdg_status_t status;
  SDG_TRY_GOTO(sdg_divergence_update(entry_name, bytes), out);
  SDG_TRY_GOTO(sdg_job_gather(sdg_channel_get(), data, bytes, entry_name, &all),
               out);
  if (all.bytes[0] == bytes)
    memcpy(data, all.data[0], bytes);
  else
    status = sdg_fail(SDG_E_DIVERGED, "rank %d makes another call than %s",
                      group->rank[0], entry_name);
out:
  sdg_records_free(&all);
  return status == SDG_OK ? SDG_OK : sdg_job_fail(status);
}

sdg_status_t sdg_root_broadcast_result(const char *entry_name, void *result,
                                       size_t bytes) {
  if (!sdg_job_joined() || sdg_job_group()->count < 2 || !sdg_whole_owned() ||
      sdg_memory_holds(result))
    return SDG_OK;
  (void)sdg_memory_lock();
  sdg_status_t status = first_take(entry_name, result, bytes);
  sdg_memory_unlock();
  return status;
}

static sdg_status_t measured_take(const char *entry_name,
                                  const sdg_rules_t *rules, int *io_count,
                                  void *measured, size_t each, int room) {
  char record[SDG_CHANNEL_RECORD_BYTES] = "";
  SDG_TRY(sdg_exchange_join(&rules->mesh, rules->axes));
  if (sdg_job_group()->count < 2)
    return SDG_OK;
  SDG_TRY(sdg_whole_own(entry_name));
  // As many as fit in a record; a program looks at the best few only.
  int max = (int)((sizeof record - sizeof *io_count) / each);
  if (room > max)
    room = max;
  if (*io_count > room)
    *io_count = room;
  memcpy(record, io_count, sizeof *io_count);
  memcpy(record + sizeof *io_count, measured, (size_t)*io_count * each);
  SDG_TRY(
      first_take(entry_name, record, sizeof *io_count + (size_t)room * each));
  int count;
  memcpy(&count, record, sizeof count);
  if (count < 0 || count > room)
    return sdg_job_fail(
        sdg_fail(SDG_E_MESSAGE, "%d results of %s", count, entry_name));
  *io_count = count;
  memcpy(measured, record + sizeof count, (size_t)count * each);
  return SDG_OK;
}

sdg_status_t sdg_root_broadcast_measured(const char *entry_name,
                                         const sdg_rules_t *rules,
                                         int *io_count, void *measured,
                                         size_t each, int room) {
  (void)sdg_memory_lock();
  sdg_status_t status =
      measured_take(entry_name, rules, io_count, measured, each, room);
  sdg_memory_unlock();
  return status;
}
