// SPDX-License-Identifier: Apache-2.0
// Plays the ranks of a call in one process, each up to its next exchange or
// reduction; then all carry that out together.
#include "src/rehearse/rehearse.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/vendor.h"
#include "src/exchange/copies.h"
#include "src/exchange/exec.h"

typedef struct player {
  sdg_exec_t exec;
  int at; // the next step
} player_t;

static const sdg_step_t *step_of(const player_t *player) {
  const sdg_plan_t *plan = player->exec.plan;
  return player->at < plan->steps ? &plan->step[player->at] : NULL;
}

static bool is_common(const sdg_step_t *step) {
  return step->kind == SDG_STEP_EXCHANGE || step->kind == SDG_STEP_REDUCE;
}

static sdg_status_t misfit(const player_t *player) {
  return sdg_fail(SDG_E_INTERNAL, "%s: plans of a rehearsal",
                  player->exec.call->entry_name);
}

// ---- exchanges -------------------------------------------------------------

// The rank's index among those along the axes.
static int member_of(const sdg_rehearsal_t *all, int rank, sdg_axes_t axes,
                     int *out_members) {
  int count = sdg_mesh_group(all->mesh, rank, axes, out_members), i = 0;
  while (i < count && out_members[i] != rank)
    i++;
  return i;
}

// Message number `number` from a rank to member `to`; NULL: there is none.
static const sdg_parcel_t *parcel_sent(const player_t *from, int to,
                                       int number) {
  const sdg_step_t *step = step_of(from);
  for (int i = 0; i < step->parcels; i++) {
    const sdg_parcel_t *parcel = &from->exec.plan->parcel[step->parcel + i];
    if (parcel->is_send && parcel->peer == to && number-- == 0)
      return parcel;
  }
  return NULL;
}

static void *parcel_at(const player_t *player, const sdg_parcel_t *parcel) {
  return (char *)sdg_exec_address(&player->exec, parcel->slab) +
         parcel->offset_bytes;
}

static sdg_status_t messages_receive(const sdg_rehearsal_t *all,
                                     player_t *players, int rank) {
  int member[SDG_RANKS_MAX], taken[SDG_RANKS_MAX] = {0};
  const player_t *to = &players[rank];
  const sdg_step_t *step = step_of(to);
  int me = member_of(all, rank, step->axes, member);
  for (int i = 0; i < step->parcels; i++) {
    const sdg_parcel_t *parcel = &to->exec.plan->parcel[step->parcel + i];
    if (parcel->is_send)
      continue;
    const player_t *from = &players[member[parcel->peer]];
    const sdg_parcel_t *sent = parcel_sent(from, me, taken[parcel->peer]++);
    if (!sent || sent->bytes != parcel->bytes)
      return misfit(to);
    SDG_TRY(sdg_vendor_check(sdg_vendor_get()->cudaMemcpyAsync(
                                 parcel_at(to, parcel), parcel_at(from, sent),
                                 parcel->bytes, cudaMemcpyDefault, all->stream),
                             "copy of a message"));
  }
  return SDG_OK;
}

// ---- reductions ------------------------------------------------------------

typedef struct values {
  sdg_type_t type;
  size_t count, bytes;
} values_t;

// The bytes of an element; 0: it cannot be combined here.
static size_t element_bytes(sdg_type_t type) {
  switch (type) {
  case 0: // numbered as cudnnDataType_t
  case 4:
    return 4;
  case 1:
  case 10:
    return 8;
  case 3:
  case 6:
    return 1;
  default:
    return 0;
  }
}

static double floating_combine(sdg_combine_t combine, double a, double b) {
  switch (combine) {
  case SDG_COMBINE_SUM:
    return a + b;
  case SDG_COMBINE_PRODUCT:
    return a * b;
  case SDG_COMBINE_MAX:
    return b > a || b != b ? b : a;
  case SDG_COMBINE_MIN:
    return b < a || b != b ? b : a;
  }
  return a;
}

static int64_t integer_combine(sdg_combine_t combine, int64_t a, int64_t b) {
  switch (combine) {
  case SDG_COMBINE_SUM: // as the devices do: it wraps
    return (int64_t)((uint64_t)a + (uint64_t)b);
  case SDG_COMBINE_PRODUCT:
    return (int64_t)((uint64_t)a * (uint64_t)b);
  case SDG_COMBINE_MAX:
    return b > a ? b : a;
  case SDG_COMBINE_MIN:
    return b < a ? b : a;
  }
  return a;
}

static int64_t integer_read(sdg_type_t type, const char *at, size_t bytes) {
  int64_t value = 0;
  memcpy(&value, at, bytes); // little endian
  int unused = 64 - 8 * (int)bytes;
  return type == 6 ? value : (int64_t)((uint64_t)value << unused) >> unused;
}

static double floating_read(const char *at, size_t bytes) {
  float single;
  double number;
  if (bytes == sizeof number) {
    memcpy(&number, at, sizeof number);
    return number;
  }
  memcpy(&single, at, sizeof single);
  return (double)single;
}

static void element_combine(const values_t *of, sdg_combine_t combine, char *io,
                            const char *with) {
  if (of->type > 1) {
    int64_t value =
        integer_combine(combine, integer_read(of->type, io, of->bytes),
                        integer_read(of->type, with, of->bytes));
    memcpy(io, &value, of->bytes);
    return;
  }
  double number = floating_combine(combine, floating_read(io, of->bytes),
                                   floating_read(with, of->bytes));
  float single = (float)number;
  if (of->bytes == sizeof number)
    memcpy(io, &number, sizeof number);
  else
    memcpy(io, &single, sizeof single);
}

static sdg_status_t values_copy(const sdg_rehearsal_t *all, void *to,
                                const void *from, size_t bytes) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  SDG_TRY(sdg_vendor_check(
      cuda->cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, all->stream),
      "copy of a result"));
  return sdg_vendor_check(cuda->cudaStreamSynchronize(all->stream),
                          "copy of a result");
}

static void terms_note(const values_t *of, const char *values, int members,
                       double *io_terms) {
  for (size_t i = 0; i < of->count; i++) {
    double sum = 0;
    for (int m = 0; m < members; m++) {
      const char *at = values + ((size_t)m * of->count + i) * of->bytes;
      double value = of->type > 1
                         ? (double)integer_read(of->type, at, of->bytes)
                         : floating_read(at, of->bytes);
      sum += value < 0 ? -value : value;
    }
    if (sum > *io_terms)
      *io_terms = sum;
  }
}

// Combines the slabs of these ranks, in their order.
static sdg_status_t group_reduce(const sdg_rehearsal_t *all, player_t *players,
                                 const int *member, int members,
                                 double *io_terms) {
  const sdg_step_t *step = step_of(&players[member[0]]);
  values_t of = {step->type, (size_t)sdg_box_count(&step->box),
                 element_bytes(step->type)};
  size_t bytes = of.count * of.bytes;
  if (of.bytes == 0)
    return sdg_fail(SDG_E_TENSOR_TYPE, "%s: a result of half precision",
                    players->exec.call->entry_name);
  char *values = malloc(bytes * (size_t)members + 1);
  if (!values)
    return sdg_fail(SDG_E_NO_MEMORY, "results of %d ranks", members);
  sdg_status_t status = SDG_OK;
  for (int m = 0; m < members && status == SDG_OK; m++)
    status = values_copy(
        all, values + (size_t)m * bytes,
        sdg_exec_element(&players[member[m]].exec, step->slab, &step->box),
        bytes);
  terms_note(&of, values, status == SDG_OK ? members : 0, io_terms);
  for (int m = 1; m < members && status == SDG_OK; m++)
    for (size_t i = 0; i < bytes; i += of.bytes)
      element_combine(&of, step->combine, values + i,
                      values + (size_t)m * bytes + i);
  for (int m = 0; m < members && status == SDG_OK; m++)
    status = values_copy(
        all, sdg_exec_element(&players[member[m]].exec, step->slab, &step->box),
        values, bytes);
  free(values);
  return status;
}

static sdg_status_t all_reduce(sdg_rehearsal_t *io, player_t *players,
                               int number) {
  int member[SDG_RANKS_MAX];
  double terms = 0;
  for (int r = 0; r < sdg_mesh_ranks(io->mesh); r++) {
    sdg_axes_t axes = step_of(&players[r])->axes;
    int members = sdg_mesh_group(io->mesh, r, axes, member);
    if (member[0] == r)
      SDG_TRY(group_reduce(io, players, member, members, &terms));
  }
  if (number < SDG_REHEARSED_REDUCTIONS)
    io->terms[number] = terms;
  return SDG_OK;
}

// ---- steps -----------------------------------------------------------------

// Up to a step that the ranks carry out together.
static sdg_status_t own_steps(player_t *io, sdg_rehearsal_t *all) {
  const sdg_exec_t *exec = &io->exec;
  for (const sdg_step_t *step; (step = step_of(io)) && !is_common(step);) {
    int done = 1;
    if (step->kind == SDG_STEP_ZERO || step->kind == SDG_STEP_COPY)
      SDG_TRY(sdg_copies_next(exec, step, all->stream, &done));
    else if (step->kind == SDG_STEP_CALL)
      all->vendor =
          exec->plan->run(exec->plan->state, step->slab, exec->call, exec);
    if (all->vendor)
      return SDG_OK;
    io->at += done;
  }
  return SDG_OK;
}

// *out_more: the ranks have come to a step that they carry out together, all to
// the same one.
static sdg_status_t to_common(sdg_rehearsal_t *io, player_t *players,
                              bool *out_more) {
  int ranks = sdg_mesh_ranks(io->mesh);
  *out_more = false;
  for (int r = 0; r < ranks && !io->vendor; r++)
    SDG_TRY(own_steps(&players[r], io));
  if (io->vendor)
    return SDG_OK;
  const sdg_step_t *first = step_of(players);
  for (int r = 1; r < ranks; r++) {
    const sdg_step_t *step = step_of(&players[r]);
    if (!step != !first || (step && step->kind != first->kind))
      return misfit(&players[r]);
  }
  *out_more = first;
  return SDG_OK;
}

static sdg_status_t steps_play(sdg_rehearsal_t *io, player_t *players) {
  int ranks = sdg_mesh_ranks(io->mesh), reductions = 0;
  bool more;
  SDG_TRY(to_common(io, players, &more));
  while (more) {
    if (step_of(players)->kind == SDG_STEP_REDUCE)
      SDG_TRY(all_reduce(io, players, reductions++));
    else
      for (int r = 0; r < ranks; r++)
        SDG_TRY(messages_receive(io, players, r));
    for (int r = 0; r < ranks; r++)
      players[r].at++;
    SDG_TRY(to_common(io, players, &more));
  }
  return sdg_vendor_check(sdg_vendor_get()->cudaStreamSynchronize(io->stream),
                          "a rehearsal");
}

sdg_status_t sdg_rehearse(sdg_rehearsal_t *io) {
  int ranks = sdg_mesh_ranks(io->mesh);
  player_t *players;
  io->vendor = 0;
  memset(io->terms, 0, sizeof io->terms);
  SDG_TRY(SDG_ALLOCATE(players, ranks, "%d ranks", ranks));
  for (int r = 0; r < ranks; r++)
    players[r].exec = (sdg_exec_t){.plan = io->rank[r].plan,
                                   .call = io->rank[r].call,
                                   .stream = io->stream,
                                   .scratch = io->rank[r].scratch};
  sdg_status_t status = steps_play(io, players);
  free(players);
  return status;
}
