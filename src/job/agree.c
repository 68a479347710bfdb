// SPDX-License-Identifier: Apache-2.0
// One exchange per call with new descriptors; every rank makes the same
// comparison.
#include "src/job/agree.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/hash.h"
#include "src/call/tag.h"
#include "src/control/control.h"
#include "src/job/cost.h"
#include "src/job/job.h"
#include "src/job/live.h"
#include "src/geometry/layout.h"
#include "src/job/thread.h"

enum { PARAMETERS_BYTES = 1024, ENTRY_BYTES = 80 };

// One rank's description of one operand.
typedef struct operand_record {
  int role, type, dims;
  sdg_nest_t nest;
  char label[SDG_TAG_LABEL_BYTES];
  int64_t details; // number of further numbers
  int64_t hint;    // 0: not examined; else 1 + twice the known facts
} operand_record_t;

typedef struct record {
  uint64_t check; // hash of all that follows
  uint64_t rules; // sdg_agree_set_rules
  char entry[ENTRY_BYTES];
  char parameters[PARAMETERS_BYTES];
  int operands, sizes;
  operand_record_t operand[SDG_OPERANDS_MAX];
  int64_t size[SDG_AGREE_SIZES]; // the op's sizes
  sdg_cost_t cost;               // of this rank's device
} record_t;
_Static_assert(sizeof(record_t) <= SDG_CHANNEL_RECORD_BYTES,
               "one agreement is one record");

static _Atomic(uint64_t) rules_digest;

void sdg_agree_set_rules(uint64_t digest) {
  atomic_store_explicit(&rules_digest, digest, memory_order_relaxed);
}

bool sdg_agree_needed(const sdg_call_t *call) {
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].descriptor &&
        !sdg_tag_vector(call->operand[i].descriptor,
                        call->operand[i].generation))
      return true;
  return call->op_descriptor &&
         !sdg_tag_vector(call->op_descriptor, call->op_generation);
}

static uint64_t check_of(const record_t *record) {
  const unsigned char *byte = (const unsigned char *)record;
  uint64_t hash = SDG_HASH_SEED;
  for (size_t i = sizeof record->check; i < sizeof *record; i += 8) {
    uint64_t word;
    memcpy(&word, byte + i, sizeof word);
    hash = sdg_hash_word(hash, word);
    hash ^= hash >> 32;
  }
  return hash;
}
_Static_assert(sizeof(record_t) % 8 == 0, "a whole number of words");

static bool operand_sound(const operand_record_t *operand) {
  unsigned seen = 0;
  if (operand->role < 0 || operand->role >= SDG_ROLE_COUNT ||
      operand->dims < 0 || operand->dims > SDG_DIMS_MAX ||
      operand->details < 0 || operand->details > SDG_DETAILS_MAX ||
      operand->hint < 0 || operand->hint >> 1 > UINT32_MAX)
    return false;
  for (int d = 0; d < operand->dims; d++) {
    const sdg_nest_t *nest = &operand->nest;
    if (nest->order[d] >= operand->dims || nest->extent[d] < 0 ||
        nest->extent[d] > INT32_MAX) // the vendor's extents are int
      return false;
    seen |= 1u << nest->order[d];
  }
  return seen == (1u << operand->dims) - 1;
}

// Returns true if sdg_agree could have sent this record. Data of another
// process is not trusted: its texts may lack a NUL, and its counts may exceed
// the arrays.
static bool record_sound(const record_t *record) {
  if (record->check != check_of(record) ||
      !memchr(record->entry, 0, sizeof record->entry) ||
      !memchr(record->parameters, 0, sizeof record->parameters) ||
      record->operands < 0 || record->operands > SDG_OPERANDS_MAX)
    return false;
  for (int i = 0; i < record->operands; i++)
    if (!operand_sound(&record->operand[i]))
      return false;
  if (record->sizes < 0 || record->sizes > SDG_AGREE_SIZES ||
      !sdg_cost_sound(&record->cost))
    return false;
  for (int i = 0; i < record->sizes; i++)
    if (record->size[i] < 0 || record->size[i] > INT32_MAX)
      return false;
  return true;
}

static sdg_status_t record_fill(const sdg_call_t *call, const char *parameters,
                                const int64_t *sizes, int count,
                                const sdg_details_t *details,
                                record_t *record) {
  memset(record, 0, sizeof *record);
  record->rules = atomic_load_explicit(&rules_digest, memory_order_relaxed);
  snprintf(record->entry, sizeof record->entry, "%s", call->entry_name);
  if (strlen(parameters) >= sizeof record->parameters)
    return sdg_fail(SDG_E_INTERNAL, "parameters of %s are too long",
                    call->entry_name);
  strcpy(record->parameters, parameters);
  record->operands = call->operands;
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    operand_record_t *to = &record->operand[i];
    to->role = (int)operand->role;
    to->type = operand->type;
    to->dims = operand->dims;
    sdg_nest_make(operand->dims, sdg_operand_is_image(operand), operand->extent,
                  operand->stride, &to->nest);
    to->details = details ? details->count[i] : 0;
    to->hint = operand->looked_up ? (int64_t)operand->hint << 1 | 1 : 0;
    if (operand->label)
      memcpy(to->label, operand->label->text, sizeof to->label);
  }
  record->sizes = count;
  for (int i = 0; i < count; i++)
    record->size[i] = sizes[i];
  record->cost = sdg_cost_mine();
  record->check = check_of(record);
  return SDG_OK;
}

static void extents_format(const operand_record_t *operand, char *out,
                           size_t out_bytes) {
  size_t used = (size_t)snprintf(
      out, out_bytes, "%s%s%.*s[", sdg_role_name((sdg_role_t)operand->role),
      operand->label[0] ? " tagged " : "", (int)sizeof operand->label - 1,
      operand->label);
  for (int d = 0; d < operand->dims && used < out_bytes; d++)
    used += (size_t)snprintf(out + used, out_bytes - used, "%s%lld",
                             d ? "," : "", (long long)operand->nest.extent[d]);
  if (used < out_bytes)
    snprintf(out + used, out_bytes - used, "]");
}

static void call_format(const record_t *record, char *out, size_t out_bytes) {
  size_t used = (size_t)snprintf(out, out_bytes, "%s(", record->entry);
  for (int i = 0; i < record->operands && used < out_bytes; i++) {
    char operand[160];
    extents_format(&record->operand[i], operand, sizeof operand);
    used += (size_t)snprintf(out + used, out_bytes - used, "%s%s", i ? " " : "",
                             operand);
  }
  if (used < out_bytes)
    snprintf(out + used, out_bytes - used, ")");
}

// In what the ranks' operands differ although they must not; NULL: in nothing.
static const char *operands_differ(const operand_record_t *x,
                                   const operand_record_t *y) {
  if (x->role != y->role || x->dims != y->dims)
    return "number of dimensions";
  if (x->type != y->type)
    return "data type";
  if (strncmp(x->label, y->label, sizeof x->label) != 0)
    return "tag";
  if (!sdg_role_is_matrix((sdg_role_t)x->role) && // needs one order
      !sdg_nest_match(x->dims, &x->nest, &y->nest))
    return "memory layout";
  if (!sdg_role_is_activation((sdg_role_t)x->role) &&
      !sdg_role_follows((sdg_role_t)x->role) &&
      memcmp(x->nest.extent, y->nest.extent, sizeof x->nest.extent) != 0)
    return "extents";
  return NULL;
}

// what: in what operand `index` differs; NULL: these are different calls.
static sdg_status_t records_differ(const record_t *a, int ra, const record_t *b,
                                   int rb, int index, const char *what) {
  char call_a[600], call_b[600];
  call_format(a, call_a, sizeof call_a);
  call_format(b, call_b, sizeof call_b);
  if (!what)
    return sdg_fail(SDG_E_DIVERGED, "rank %d calls %s while rank %d calls %s",
                    rb, call_b, ra, call_a);
  return sdg_fail(SDG_E_DISAGREE,
                  "%s of %s differs: rank %d calls %s, rank %d calls %s", what,
                  sdg_role_name((sdg_role_t)a->operand[index].role), ra, call_a,
                  rb, call_b);
}

// Compares the records of two ranks, which must describe the same call; `ra`
// and `rb` are rank numbers for messages.
static sdg_status_t records_compare(const record_t *a, int ra,
                                    const record_t *b, int rb) {
  if (a->rules != b->rules)
    return sdg_fail(SDG_E_DISAGREE,
                    "rank %d and rank %d were given different rules: --rules, "
                    "--split, --mesh, --view, --parts, --wrap, --window and "
                    "--piece-values, or their variables, have to say the same",
                    ra, rb);
  if (strcmp(a->entry, b->entry) != 0 || a->operands != b->operands)
    return records_differ(a, ra, b, rb, 0, NULL);
  for (int i = 0; i < a->operands; i++) {
    const char *what = operands_differ(&a->operand[i], &b->operand[i]);
    if (what)
      return records_differ(a, ra, b, rb, i, what);
  }
  if (strcmp(a->parameters, b->parameters) != 0 || a->sizes != b->sizes)
    return sdg_fail(SDG_E_DISAGREE,
                    "parameters of %s differ: rank %d has %s, rank %d has %s",
                    a->entry, ra, a->parameters, rb, b->parameters);
  return SDG_OK;
}

static void hints_store(const sdg_operand_t *operand,
                        const record_t *const *records, int count, int index) {
  sdg_tag_hints_t hints = {.unknown = -1, .differs = -1};
  for (int r = 0; r < count; r++) {
    int64_t said = records[r]->operand[index].hint;
    sdg_hint_t hint = (sdg_hint_t)(said >> 1);
    hints.exchanged |= said != 0;
    if (!hint) {
      hints.unknown = r;
    } else if (!hints.hint) {
      hints.hint = hint;
    } else if (hint != hints.hint) {
      hints.differs = r;
      hints.other = hint;
    }
  }
  if (hints.exchanged)
    sdg_tag_set_hints(operand->descriptor, operand->generation, &hints);
}

// What one agreement needs for each rank.
typedef struct room {
  int ranks;
  char (*all)[SDG_CHANNEL_RECORD_BYTES];
  size_t *bytes;
  const record_t **records;
  sdg_nest_t *nest; // of one operand
  int64_t *extent;  // SDG_AGREE_SIZES of each rank
  sdg_detail_counts_t *counts;
} room_t;

// Stores what the ranks said of operand `index`.
static sdg_status_t vector_store(const sdg_operand_t *operand, int index,
                                 const room_t *room) {
  size_t dims = (size_t)operand->dims;
  int64_t nesting[SDG_DIMS_MAX];
  for (int r = 0; r < room->ranks; r++) {
    room->nest[r] = room->records[r]->operand[index].nest;
    memcpy(room->extent + (size_t)r * dims, room->nest[r].extent,
           dims * sizeof *room->extent);
  }
  sdg_nesting_find(operand->dims, sdg_operand_is_image(operand), room->ranks,
                   room->nest, nesting);
  return sdg_tag_set_vector(operand->descriptor, operand->generation,
                            room->ranks, operand->dims, nesting, room->extent);
}

static sdg_status_t vectors_store(const sdg_call_t *call, const room_t *room) {
  for (int i = 0; i < call->operands; i++) {
    if (!call->operand[i].descriptor)
      continue;
    SDG_TRY(vector_store(&call->operand[i], i, room));
    hints_store(&call->operand[i], room->records, room->ranks, i);
  }
  if (!call->op_descriptor)
    return SDG_OK;
  int sizes = room->records[0]->sizes;
  for (int r = 0; r < room->ranks; r++)
    memcpy(room->extent + (size_t)r * (size_t)sizes, room->records[r]->size,
           (size_t)sizes * sizeof *room->extent);
  return sdg_tag_set_vector(call->op_descriptor, call->op_generation,
                            room->ranks, sizes, NULL, room->extent);
}

// Every rank takes the slowest numbers, whatever devices the ranks have.
static void costs_settle(const record_t *const *records, int count) {
  sdg_cost_t cost = records[0]->cost;
  for (int r = 1; r < count; r++)
    cost = sdg_cost_slowest(&cost, &records[r]->cost);
  sdg_cost_settle(&cost);
}

static sdg_status_t details_agree(const sdg_call_t *call,
                                  const record_t *const *records, int count,
                                  sdg_detail_counts_t *counts,
                                  const sdg_details_t *details) {
  static const sdg_details_t none;
  int any = 0;
  // Operands that the call lacks have none.
  memset(counts, 0, (size_t)count * sizeof *counts);
  for (int r = 0; r < count; r++)
    for (int i = 0; i < call->operands; i++)
      any |= counts[r].of[i] = (int)records[r]->operand[i].details;
  return any ? sdg_details_exchange(call, details ? details : &none, counts)
             : SDG_OK;
}

static void room_free(room_t *room) {
  free(room->all);
  free(room->bytes);
  free(room->records);
  free(room->nest);
  free(room->extent);
  free(room->counts);
  *room = (room_t){.ranks = 0};
}

// A thread keeps the room of its first agreement: some calls agree each time.
static sdg_status_t room_get(int ranks, room_t **out) {
  static room_t rooms[SDG_CHANNEL_THREADS]; // index: the thread's channel
  room_t *room = &rooms[sdg_channel_get()];
  size_t count = (size_t)ranks;
  *out = room;
  if (room->ranks == ranks)
    return SDG_OK;
  room_free(room);
  room->all = malloc(count * sizeof *room->all);
  room->bytes = malloc(count * sizeof *room->bytes);
  room->records = malloc(count * sizeof *room->records);
  room->nest = malloc(count * sizeof *room->nest);
  room->extent = malloc(count * SDG_AGREE_SIZES * sizeof *room->extent);
  room->counts = malloc(count * sizeof *room->counts);
  if (!room->all || !room->bytes || !room->records || !room->nest ||
      !room->extent || !room->counts) {
    room_free(room);
    return sdg_fail(SDG_E_NO_MEMORY, "records of %d ranks", ranks);
  }
  room->ranks = ranks;
  return SDG_OK;
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

sdg_status_t sdg_agree(const sdg_call_t *call, const char *parameters,
                       const int64_t *sizes, int sizes_count,
                       const sdg_details_t *details, int64_t *out_wait_ns) {
  const sdg_group_t *group = sdg_job_group();
  record_t mine;
  SDG_TRY(record_fill(call, parameters, sizes, sizes_count, details, &mine));
  size_t count = (size_t)group->count;
  room_t *room;
  SDG_TRY(room_get(group->count, &room));
  const record_t **records = room->records;
  sdg_status_t status = SDG_OK;
  sdg_control_t *control = sdg_job_control();
  char what[128];
  sdg_job_call(what, sizeof what);
  int64_t start_ns = now_ns();
  sdg_live_wait_begin(sdg_channel_get());
  status = sdg_control_exchange(control, sdg_channel_get(), group->rank,
                                group->count, &mine, sizeof mine, room->all,
                                room->bytes, what);
  *out_wait_ns = now_ns() - start_ns;
  sdg_live_wait_end(sdg_channel_get());
  if (status != SDG_OK)
    return sdg_job_fail(status);
  for (size_t r = 0; r < count; r++) {
    records[r] = (const record_t *)(const void *)room->all[r];
    if (room->bytes[r] != sizeof(record_t)) {
      // A different kind of exchange: the creation of a communicator.
      status = sdg_fail(SDG_E_DIVERGED,
                        "rank %d sets up a communicator, or its call was "
                        "refused, while this rank calls %s",
                        group->rank[r], call->entry_name);
      return sdg_job_fail(status);
    }
    if (!record_sound(records[r])) {
      status = sdg_fail(SDG_E_MESSAGE, "rank %d's description of %s",
                        group->rank[r], call->entry_name);
      return sdg_job_fail(status);
    }
  }
  for (size_t r = 1; r < count && status == SDG_OK; r++)
    status =
        records_compare(records[0], group->rank[0], records[r], group->rank[r]);
  if (status == SDG_E_DIVERGED)
    status = sdg_job_fail(status);
  if (status == SDG_OK)
    costs_settle(records, group->count);
  if (status == SDG_OK)
    status = vectors_store(call, room);
  if (status == SDG_OK)
    status = details_agree(call, records, group->count, room->counts, details);
  return status;
}
