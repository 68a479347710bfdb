// SPDX-License-Identifier: Apache-2.0
// Turns this rank's row into messages, and messages into the rows of the other
// ranks.
#include "src/control/replica.h"

#include <stdio.h>
#include <string.h>

#include "src/control/thread_name.h"

// ---- telling --------------------------------------------------------------

static bool message_put(sdg_link_t *link, sdg_frame_kind_t kind,
                        const void *body, size_t bytes) {
  void *room = sdg_link_message(link, kind, bytes);
  if (room && bytes > 0)
    memcpy(room, body, bytes);
  return room != NULL;
}

// A channel's count of calls and of steps: read before the channel's records,
// sent after them.
typedef struct count {
  bool fresh;
  uint32_t steps;
  uint32_t version;
  uint64_t end;
  sdg_frame_count_t frame;
} count_t;

static void count_read(const sdg_shm_channel_t *own, uint32_t sent,
                       count_t *out) {
  uint64_t words[SDG_SHM_WHAT_WORDS];
  out->fresh = false;
  out->end = atomic_load(&own->steps_end);
  out->steps = atomic_load_explicit(&own->steps, memory_order_acquire);
  out->version = atomic_load_explicit(&own->version, memory_order_acquire);
  if (out->version == sent || out->version % 2 != 0)
    return;
  for (int i = 0; i < SDG_SHM_WHAT_WORDS; i++)
    words[i] = atomic_load_explicit(&own->what[i], memory_order_acquire);
  out->frame.calls = atomic_load_explicit(&own->calls, memory_order_acquire);
  memcpy(out->frame.what, words, sizeof words);
  // If the counting thread wrote meanwhile, the copy is torn: send it next
  // time.
  out->fresh = atomic_load(&own->version) == out->version;
}

static bool records_send(const sdg_shm_channel_t *own, int channel,
                         sdg_link_t *link) {
  for (int lane = 0; lane < SDG_SHM_LANES; lane++) {
    uint32_t *sent = &link->sent.number[channel][lane];
    uint32_t number =
        atomic_load_explicit(&own->number[lane], memory_order_acquire);
    if (number == *sent)
      continue;
    if (!sdg_shm_mask_has(own->members[lane], link->rank)) {
      *sent = number;
      continue;
    }
    // At most two: record n+1 is made after all members have record n-1.
    while (*sent != number) {
      uint32_t next = *sent + 1;
      const sdg_shm_record_t *record = &own->record[lane][next % 2];
      const sdg_frame_record_t frame = {.group = atomic_load(&own->group[lane]),
                                        .channel = (uint32_t)channel,
                                        .lane = (uint32_t)lane,
                                        .number = next,
                                        .bytes = record->bytes};
      char *room =
          sdg_link_message(link, SDG_FRAME_RECORD, sizeof frame + frame.bytes);
      if (!room)
        return false;
      memcpy(room, &frame, sizeof frame);
      memcpy(room + sizeof frame, record->data, frame.bytes);
      *sent = next;
    }
  }
  return true;
}

static bool steps_send(const sdg_shm_channel_t *own, int channel, uint32_t last,
                       sdg_link_t *link) {
  uint32_t *sent = &link->sent.steps[channel];
  if (*sent == last || !sdg_shm_mask_has(own->step_peers, link->rank))
    return true;
  if (last - *sent > SDG_SHM_STEPS)
    *sent = last - SDG_SHM_STEPS; // older steps are overwritten
  while (*sent != last) {
    uint64_t step[SDG_FRAME_STEPS_MAX];
    sdg_frame_steps_t frame = {.channel = (uint32_t)channel};
    uint32_t at = *sent;
    while (at != last && frame.count < SDG_FRAME_STEPS_MAX) {
      at++;
      uint64_t value = atomic_load(&own->step[at % SDG_SHM_STEPS]);
      if (value >> 32 == at) // else overwritten meanwhile
        step[frame.count++] = value;
    }
    size_t bytes = frame.count * sizeof *step;
    char *room = sdg_link_message(link, SDG_FRAME_STEPS, sizeof frame + bytes);
    if (!room)
      return false;
    memcpy(room, &frame, sizeof frame);
    memcpy(room + sizeof frame, step, bytes);
    *sent = at;
  }
  return true;
}

static bool channel_send(const sdg_shm_channel_t *own, int channel,
                         count_t *count, sdg_link_t *link) {
  sdg_link_sent_t *sent = &link->sent;
  if (!records_send(own, channel, link))
    return false;
  if (count->fresh) {
    count->frame.channel = (uint32_t)channel;
    if (!message_put(link, SDG_FRAME_COUNT, &count->frame, sizeof count->frame))
      return false;
    sent->version[channel] = count->version;
  }
  if (!steps_send(own, channel, count->steps, link))
    return false;
  if (count->end == sent->end[channel])
    return true;
  const sdg_frame_end_t end = {.channel = (uint32_t)channel, .end = count->end};
  if (!message_put(link, SDG_FRAME_END, &end, sizeof end))
    return false;
  sent->end[channel] = count->end;
  return true;
}

static bool turns_send(const sdg_shm_turns_t *own, sdg_link_t *link) {
  sdg_link_sent_t *sent = &link->sent;
  uint64_t taken = atomic_load_explicit(&own->taken, memory_order_acquire);
  uint64_t given = atomic_load_explicit(&own->given, memory_order_acquire);
  if (given == sent->given && taken == sent->taken)
    return true;
  // The first rank gives no turn before all ranks have taken the turn whose
  // place it overwrites.
  sdg_frame_turns_t frame = {sent->given, given, taken};
  size_t bytes = (size_t)(given - sent->given);
  unsigned char *room =
      sdg_link_message(link, SDG_FRAME_TURNS, sizeof frame + bytes);
  if (!room)
    return false;
  memcpy(room, &frame, sizeof frame);
  for (size_t i = 0; i < bytes; i++)
    room[sizeof frame + i] = atomic_load_explicit(
        &own->turn[(sent->given + i) % SDG_SHM_TURNS], memory_order_relaxed);
  sent->given = given;
  sent->taken = taken;
  return true;
}

// Thread names: other ranks ask rank 0, and rank 0 tells every rank.
static bool names_send(const sdg_shm_view_t *view, int self, sdg_link_t *link) {
  sdg_shm_rank_t *own = &view->shared->rank[self];
  sdg_frame_name_t frame = {0};
  uint32_t asked = atomic_load_explicit(&own->asked, memory_order_acquire);
  if (link->rank == 0 && link->sent.asked != asked) {
    memcpy(frame.name, own->name, sizeof frame.name);
    if (!message_put(link, SDG_FRAME_ASK, &frame, sizeof frame))
      return false;
    link->sent.asked = asked;
    atomic_store_explicit(&own->asked_sent, asked, memory_order_release);
  }
  for (int c = 1; self == 0 && c < SDG_CHANNEL_THREADS; c++) {
    if (link->sent.named[c])
      continue;
    frame.channel = (uint32_t)c;
    sdg_thread_name_of(view->shared, c, frame.name, sizeof frame.name);
    if (!frame.name[0])
      continue;
    if (!message_put(link, SDG_FRAME_NAME, &frame, sizeof frame))
      return false;
    link->sent.named[c] = true;
  }
  return true;
}

static bool failure_send(const sdg_shm_view_t *view, sdg_link_t *link) {
  sdg_frame_failure_t frame;
  if (link->sent.failure ||
      !sdg_shm_posted(view, &frame.rank, &frame.status, frame.text))
    return true;
  link->sent.failure =
      message_put(link, SDG_FRAME_FAILURE, &frame, sizeof frame);
  return link->sent.failure;
}

bool sdg_replica_send(const sdg_shm_view_t *view, int self, sdg_link_t *link) {
  const sdg_shm_rank_t *own = &view->shared->rank[self];
  bool left = sdg_shm_state(view, self) == SDG_SHM_LEFT;
  for (int c = 0; c < SDG_CHANNELS; c++) {
    count_t count = {.fresh = false};
    count_read(&own->channel[c], link->sent.version[c], &count);
    if (!channel_send(&own->channel[c], c, &count, link))
      return false;
  }
  if (!turns_send(&own->turns, link) || !names_send(view, self, link) ||
      !failure_send(view, link))
    return false;
  if (left && !link->sent.left)
    link->sent.left = message_put(link, SDG_FRAME_LEFT, NULL, 0);
  return left == link->sent.left;
}

// ---- hearing --------------------------------------------------------------

static sdg_shm_channel_t *channel_of(const sdg_shm_view_t *view, int rank,
                                     uint32_t channel) {
  return channel < SDG_CHANNELS ? &view->shared->rank[rank].channel[channel]
                                : NULL;
}

static bool record_receive(const sdg_shm_view_t *view, int from,
                           const void *body, size_t bytes) {
  sdg_frame_record_t frame;
  if (bytes < sizeof frame)
    return false;
  memcpy(&frame, body, sizeof frame);
  sdg_shm_channel_t *to = channel_of(view, from, frame.channel);
  if (!to || frame.lane >= SDG_SHM_LANES ||
      frame.bytes != bytes - sizeof frame ||
      frame.bytes > SDG_CHANNEL_RECORD_BYTES)
    return false;
  sdg_shm_record_t *record = &to->record[frame.lane][frame.number % 2];
  record->bytes = frame.bytes;
  memcpy(record->data, (const char *)body + sizeof frame, frame.bytes);
  atomic_store_explicit(&to->number[frame.lane], frame.number,
                        memory_order_release);
  atomic_store_explicit(&to->group[frame.lane], frame.group,
                        memory_order_release);
  // As in an exchange: either the sleeper sees the count or this thread sees
  // the sleeper.
  atomic_fetch_add(&to->published, 1);
  if (atomic_load(&to->sleepers) != 0)
    sdg_shm_wake(&to->published);
  return true;
}

static bool count_receive(const sdg_shm_view_t *view, int from,
                          const void *body, size_t bytes) {
  sdg_frame_count_t frame;
  if (bytes != sizeof frame)
    return false;
  memcpy(&frame, body, sizeof frame);
  sdg_shm_channel_t *to = channel_of(view, from, frame.channel);
  if (to)
    sdg_shm_count(to, frame.calls, frame.what, sizeof frame.what);
  return to != NULL;
}

static void differ(const sdg_shm_view_t *view, int self, int from,
                   uint32_t channel, uint32_t number) {
  sdg_shm_channel_t *own = channel_of(view, self, channel);
  char text[SDG_SHM_TEXT_BYTES];
  atomic_store(&own->differs, (uint32_t)from + 1);
  snprintf(text, sizeof text,
           "op %u of rank %d differs from op %u of rank %d in its entry, "
           "extents, parameters, scalars or tensors",
           number, from, number, self);
  sdg_shm_post(view, self, SDG_E_DIVERGED, text);
}

static bool steps_receive(const sdg_shm_view_t *view, int self, int from,
                          const void *body, size_t bytes) {
  sdg_frame_steps_t frame;
  if (bytes < sizeof frame)
    return false;
  memcpy(&frame, body, sizeof frame);
  sdg_shm_channel_t *to = channel_of(view, from, frame.channel);
  if (!to || frame.count > SDG_FRAME_STEPS_MAX ||
      bytes != sizeof frame + frame.count * sizeof(uint64_t))
    return false;
  const sdg_shm_channel_t *own = channel_of(view, self, frame.channel);
  for (uint32_t i = 0; i < frame.count; i++) {
    uint64_t step;
    memcpy(&step, (const char *)body + sizeof frame + i * sizeof step,
           sizeof step);
    uint32_t number = (uint32_t)(step >> 32);
    int place = (int)(number % SDG_SHM_STEPS);
    // Sequentially consistent, as in sdg_control_step: of this thread and the
    // thread that carries out the op, the one that stores later sees the
    // other's value.
    atomic_store(&to->step[place], step);
    uint64_t ours = atomic_load(&own->step[place]);
    if (sdg_shm_steps_differ(ours, step))
      differ(view, self, from, frame.channel, number);
  }
  return true;
}

static bool end_receive(const sdg_shm_view_t *view, int from, const void *body,
                        size_t bytes) {
  sdg_frame_end_t frame;
  if (bytes != sizeof frame)
    return false;
  memcpy(&frame, body, sizeof frame);
  sdg_shm_channel_t *to = channel_of(view, from, frame.channel);
  if (to)
    atomic_store(&to->steps_end, frame.end);
  return to != NULL;
}

static bool turns_receive(const sdg_shm_view_t *view, int from,
                          const void *body, size_t bytes) {
  sdg_frame_turns_t frame;
  sdg_shm_turns_t *to = &view->shared->rank[from].turns;
  if (bytes < sizeof frame)
    return false;
  memcpy(&frame, body, sizeof frame);
  const unsigned char *turn = (const unsigned char *)body + sizeof frame;
  if (frame.from != atomic_load(&to->given) || frame.given < frame.from ||
      frame.given - frame.from != bytes - sizeof frame ||
      frame.given - frame.from > SDG_SHM_TURNS)
    return false;
  for (uint64_t n = frame.from; n < frame.given; n++)
    atomic_store_explicit(&to->turn[n % SDG_SHM_TURNS], turn[n - frame.from],
                          memory_order_relaxed);
  atomic_store_explicit(&to->given, frame.given, memory_order_release);
  atomic_store_explicit(&to->taken, frame.taken, memory_order_release);
  return true;
}

// Handles a question to rank 0 about a thread's name, or rank 0's answer.
static bool name_receive(const sdg_shm_view_t *view, int self, int from,
                         bool asks, const void *body, size_t bytes) {
  sdg_frame_name_t frame;
  int channel;
  if (bytes != sizeof frame || (asks ? self : from) != 0)
    return false;
  memcpy(&frame, body, sizeof frame);
  frame.name[sizeof frame.name - 1] = '\0';
  if (asks) {
    // If no channel is free, the asking rank sees that all have other names.
    sdg_status_t claimed =
        sdg_thread_name_claim(view->shared, frame.name, &channel);
    return claimed == SDG_OK || claimed == SDG_E_THREADS_MANY;
  }
  if (frame.channel < 1 || frame.channel >= SDG_CHANNEL_THREADS)
    return false;
  sdg_thread_name_put(view->shared, (int)frame.channel, frame.name);
  return true;
}

static bool failure_receive(const sdg_shm_view_t *view, const void *body,
                            size_t bytes) {
  sdg_frame_failure_t frame;
  if (bytes != sizeof frame)
    return false;
  memcpy(&frame, body, sizeof frame);
  frame.text[sizeof frame.text - 1] = '\0';
  if (frame.rank >= (uint32_t)view->ranks)
    return false;
  sdg_shm_post(view, (int)frame.rank, (sdg_status_t)frame.status, frame.text);
  return true;
}

bool sdg_replica_receive(const sdg_shm_view_t *view, int self, int from,
                         const sdg_frame_head_t *head, const void *body) {
  size_t bytes = head->bytes;
  switch (head->kind) {
  case SDG_FRAME_RECORD:
    return record_receive(view, from, body, bytes);
  case SDG_FRAME_COUNT:
    return count_receive(view, from, body, bytes);
  case SDG_FRAME_STEPS:
    return steps_receive(view, self, from, body, bytes);
  case SDG_FRAME_END:
    return end_receive(view, from, body, bytes);
  case SDG_FRAME_TURNS:
    return turns_receive(view, from, body, bytes);
  case SDG_FRAME_ASK:
  case SDG_FRAME_NAME:
    return name_receive(view, self, from, head->kind == SDG_FRAME_ASK, body,
                        bytes);
  case SDG_FRAME_FAILURE:
    return failure_receive(view, body, bytes);
  case SDG_FRAME_LEFT:
    atomic_store(&view->shared->rank[from].state, (uint32_t)SDG_SHM_LEFT);
    return bytes == 0;
  default:
    return false;
  }
}
