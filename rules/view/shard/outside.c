// SPDX-License-Identifier: Apache-2.0
// Hints about memory that is written by calls that are not split.
#include "rules/view/shard/outside.h"

#include <stdatomic.h>
#include <stdio.h>

#include "rules/memory/memory.h"
#include "rules/reuse/prefetch.h"
#include "rules/step/together.h"
#include "rules/vendor/argument.h"
#include "src/base/hash.h"
#include "src/base/log.h"
#include "src/base/options.h"
#include "src/control/parted.h"
#include "src/geometry/hint.h"
#include "src/job/job.h"

static size_t span_of(const sdg_access_t *access) {
  size_t rows = access->height ? access->height - 1 : 0;
  return rows * access->pitch + access->width;
}

static bool several_pieces(sdg_axes_t axes) {
  int rank[SDG_RANKS_MAX];
  return axes && sdg_job_joined() &&
         sdg_mesh_group(sdg_job_mesh(), sdg_job_rank(), axes, rank) > 1;
}

// Programs may read their piece to write it to a file, so one rank prints this
// line once, and only if the rules do not say what values of pieces mean.
static void read_say(const char *entry_name, sdg_hint_t pieces) {
  static atomic_bool said;
  if ((pieces & (SDG_HINT_LOCAL | SDG_HINT_GLOBAL)) ||
      !several_pieces(pieces & SDG_HINT_AXES) || sdg_job_rank() != 0 ||
      !*sdg_options_get()->report || atomic_exchange(&said, true))
    return;
  sdg_log("%s reads a tensor in pieces: each rank gets only its own piece, so "
          "what the program computes from it is right for this piece only. If "
          "that is meant, write values = local in the rules, or --piece-values "
          "local, and this line goes away",
          entry_name);
}

// Whether the bytes lie in memory without gaps.
static bool is_dense(const sdg_access_t *access) {
  return access->height <= 1 || access->pitch == access->width;
}

// Nothing tells where the call writes.
static void doubt_all(void) {
  sdg_prefetch_written(NULL, SIZE_MAX);
  sdg_hint_doubt(NULL, SIZE_MAX);
}

// One copy: what the program does to host memory is not seen.
static void copied(const sdg_access_t *from, const sdg_access_t *to) {
  const void *x = (const void *)from->at, *y = (const void *)to->at;
  if (!sdg_memory_holds(y))
    sdg_hint_put(y, span_of(to), !is_dense(to), 0);
  else if (is_dense(from) && is_dense(to))
    sdg_hint_copy(x, y, span_of(to));
  else
    sdg_hint_put(y, span_of(to), true, sdg_hint_read(x, span_of(from)));
}

void sdg_outside_touch(const sdg_memory_access_t *memory) {
  const sdg_access_t *from = NULL;
  for (int i = 0; i < memory->accesses; i++)
    if (memory->copies && memory->access[i].reads)
      from = &memory->access[i];
  sdg_hint_t pieces =
      from ? sdg_hint_within((const void *)from->at, span_of(from)) : 0;
  for (int i = 0; i < memory->accesses; i++) {
    const sdg_access_t *access = &memory->access[i];
    const void *at = (const void *)access->at;
    if (!access->writes)
      continue;
    if (pieces && !sdg_memory_holds(at))
      read_say(memory->name, pieces);
    sdg_prefetch_written(at, span_of(access));
    if (from && from != access)
      copied(from, access);
    else
      sdg_hint_put(at, span_of(access), !is_dense(access), 0);
  }
  if (memory->everything)
    doubt_all();
}

// ---- writes that no tensor describes ----------------------------------------

// What is known about the memory that the call reads, combined.
static sdg_hint_t reads_of(const sdg_writes_t *writes) {
  sdg_hint_t from = 0;
  for (int i = 0; i < writes->reads; i++) {
    const sdg_footprint_t *read = &writes->read[i];
    sdg_hint_t hint = sdg_hint_read(read->at, read->bytes);
    from = i == 0 ? hint : sdg_hint_join(from, hint);
  }
  return from;
}

void sdg_outside_writes(const sdg_writes_t *writes) {
  sdg_hint_t from = reads_of(writes);
  for (int i = 0; i < writes->writes; i++) {
    const sdg_write_t *write = &writes->write[i];
    const sdg_footprint_t *to = &write->to;
    sdg_hint_t made = write->made ? from : 0;
    sdg_prefetch_written(to->at, to->bytes);
    if (write->kept)
      continue;
    if (!sdg_memory_holds(to->at)) {
      read_say(writes->name, made);
      made = 0;
    }
    if (write->partial && !(made & SDG_HINT_AXES))
      sdg_hint_doubt(to->at, to->bytes);
    else
      sdg_hint_put(to->at, to->bytes, to->gaps || write->partial, made);
  }
  if (writes->everything)
    doubt_all();
}

// ---- calls that are not split ----------------------------------------------

// Whether the call computes an output from its old elements, too.
static bool is_updated(const sdg_call_t *call, const sdg_operand_t *operand) {
  return operand->is_updated || sdg_call_scalar(call, SDG_BETA) != 0;
}

static bool has_memory(const sdg_operand_t *operand) {
  return operand->data && operand->elem_bytes > 0;
}

static size_t bytes_of(const sdg_operand_t *operand) {
  return sdg_operand_access(operand, true, false).width;
}

// What is known about the activations that the call reads, combined.
static sdg_hint_t inputs_of(const sdg_call_t *call) {
  sdg_hint_t from = 0;
  bool first = true;
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    if (!has_memory(operand) || !sdg_role_is_activation(operand->role) ||
        (operand->is_output && !is_updated(call, operand)))
      continue;
    sdg_hint_t hint = sdg_hint_read(operand->data, bytes_of(operand));
    from = first ? hint : sdg_hint_join(from, hint);
    first = false;
  }
  return from;
}

static bool in_place(const sdg_call_t *call, const sdg_operand_t *output) {
  for (int i = 0; i < call->operands; i++)
    if (!call->operand[i].is_output && call->operand[i].data == output->data)
      return true;
  return is_updated(call, output);
}

static void output_put(const sdg_call_t *call, const sdg_operand_t *output,
                       sdg_hint_t from) {
  sdg_layout_t layout = sdg_operand_layout(output);
  size_t bytes = sdg_layout_bytes(&layout);
  bool keeps = sdg_family_is(call->family, SDG_FAMILY_KEEPS_PIECES) &&
               sdg_role_is_activation(output->role);
  sdg_prefetch_written(output->data, bytes);
  if (!keeps && is_updated(call, output))
    return;
  // A part of a tensor that was changed in place is still a part of it.
  if (keeps && from && in_place(call, output) &&
      sdg_hint_around(output->data, bytes) == from)
    return;
  sdg_hint_put(output->data, bytes, !sdg_layout_dense(&layout),
               keeps ? from : 0);
}

void sdg_outside_call(const sdg_call_t *call) {
  if (sdg_family_is(call->family, SDG_FAMILY_STATED)) {
    sdg_writes_t writes;
    sdg_writes_of_product(call->args, &writes);
    writes.name = call->entry_name;
    sdg_outside_writes(&writes);
    return;
  }
  sdg_hint_t from = sdg_hint_any() ? inputs_of(call) : 0;
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].is_output && has_memory(&call->operand[i]))
      output_put(call, &call->operand[i], from);
}

// ---- vectors ---------------------------------------------------------------

static sdg_footprint_t footprint_of(const void *at, int64_t n, int64_t inc,
                                    int type) {
  int64_t step = inc < 0 ? -inc : inc;
  size_t each = sdg_vector_type_bytes(type);
  if (n < 1 || !at)
    return (sdg_footprint_t){NULL, 0, false};
  return (sdg_footprint_t){at, (size_t)((n - 1) * step + 1) * each, step != 1};
}

// What is known about a vector's memory.
typedef struct known {
  sdg_hint_t hint;
  uint64_t contents;
} known_t;

static known_t known_of(const sdg_footprint_t *vector) {
  return (known_t){sdg_hint_read(vector->at, vector->bytes),
                   sdg_hint_pieces_contents(vector->at, vector->bytes)};
}

// A part of a tensor that stays what it was is still a part of it.
static void put(const sdg_footprint_t *vector, known_t known) {
  if (!known.hint || sdg_hint_around(vector->at, vector->bytes) != known.hint ||
      sdg_hint_pieces_contents(vector->at, vector->bytes) != known.contents)
    sdg_hint_put_contents(vector->at, vector->bytes, vector->gaps, known.hint,
                          known.contents);
}

// What is known about results that are computed from `a` and `b`, and overwrite
// `a`.
static known_t joined(known_t a, known_t b) {
  return (known_t){sdg_hint_join(a.hint, b.hint),
                   a.contents ? a.contents : b.contents};
}

void sdg_outside_vector(const sdg_vector_t *vector) {
  sdg_footprint_t x =
      footprint_of(vector->x, vector->n, vector->incx, vector->type_x);
  sdg_footprint_t y =
      footprint_of(vector->y, vector->n, vector->incy, vector->type_y);
  known_t of_x = known_of(&x), of_y = known_of(&y);
  bool swaps = vector->op == SDG_VECTOR_SWAP || vector->op == SDG_VECTOR_ROT;
  if (swaps || vector->op == SDG_VECTOR_SCAL)
    sdg_prefetch_written(x.at, x.bytes);
  if (swaps || vector->op == SDG_VECTOR_COPY || vector->op == SDG_VECTOR_AXPY)
    sdg_prefetch_written(y.at, y.bytes);
  switch (vector->op) {
  case SDG_VECTOR_COPY:
    put(&y, of_x);
    break;
  case SDG_VECTOR_AXPY:
    put(&y, joined(of_y, of_x));
    break;
  case SDG_VECTOR_SWAP:
    put(&x, of_y);
    put(&y, of_x);
    break;
  case SDG_VECTOR_ROT:
    put(&x, joined(of_x, of_y));
    put(&y, joined(of_y, of_x));
    break;
  case SDG_VECTOR_SCAL:
  case SDG_VECTOR_NRM2:
  case SDG_VECTOR_ASUM:
  case SDG_VECTOR_DOT:
  case SDG_VECTOR_INDEX:
    break;
  }
}

// ---- values ----------------------------------------------------------------

// The hint of the vectors in pieces; 0: none is, or there is one piece only.
static sdg_hint_t pieces_of(const sdg_vector_t *vector) {
  sdg_footprint_t x =
      footprint_of(vector->x, vector->n, vector->incx, vector->type_x);
  sdg_footprint_t y =
      footprint_of(vector->y, vector->n, vector->incy, vector->type_y);
  sdg_hint_t a = sdg_hint_within(x.at, x.bytes);
  sdg_hint_t b = sdg_hint_within(y.at, y.bytes);
  sdg_hint_t pieces = sdg_hint_join(a, b);
  return several_pieces(pieces & SDG_HINT_AXES) ? pieces : 0;
}

// Which tensor each vector is a piece of. All ranks find the same, even where
// they have written to their pieces themselves. 0: unknown, because a vector
// has pieces of several tensors, or of none.
static void contents_of(const sdg_vector_t *vector, uint64_t out[2]) {
  sdg_footprint_t x =
      footprint_of(vector->x, vector->n, vector->incx, vector->type_x);
  sdg_footprint_t y =
      footprint_of(vector->y, vector->n, vector->incy, vector->type_y);
  out[0] = sdg_hint_pieces_contents(x.at, x.bytes);
  out[1] = sdg_hint_pieces_contents(y.at, y.bytes);
}

static void axes_format(sdg_axes_t axes, char *out, size_t bytes) {
  const sdg_mesh_t *mesh = sdg_job_mesh();
  size_t used = 0;
  out[0] = 0;
  for (int a = 0; a < mesh->axes && used < bytes; a++)
    if (axes >> a & 1)
      used += (size_t)snprintf(out + used, bytes - used, "%s%s",
                               used ? "+" : "", mesh->name[a]);
}

sdg_status_t sdg_outside_value(const sdg_vector_t *vector) {
  sdg_hint_t pieces = pieces_of(vector);
  char axes[80];
  if (!pieces)
    return SDG_OK;
  if (pieces & SDG_HINT_LOCAL) {
    sdg_parted_note(vector->entry_name);
    return SDG_OK;
  }
  if (pieces & SDG_HINT_GLOBAL)
    return sdg_together_check(vector);
  axes_format(pieces & SDG_HINT_AXES, axes, sizeof axes);
  return sdg_fail(
      SDG_E_PIECE_VALUE,
      "%s of %lld elements at %p, which a tagged call wrote as this rank's "
      "piece over %s. Write into the section values = global for the value of "
      "all pieces together, or values = local for each rank's own value; local "
      "is also right if a pool returned this memory again and a kernel of the "
      "program has written it since%s",
      vector->entry_name, (long long)vector->n, vector->x, axes,
      pieces & SDG_HINT_MIXED
          ? ". These elements may not all be of the pieces any more, and then "
            "global is wrong: since the tagged call another call wrote a part "
            "of them, or wrote to addresses that sundog cannot read (arrays of "
            "addresses, batches of copies in three dimensions)"
          : "");
}

sdg_status_t sdg_outside_combine(const sdg_vector_t *vector, bool refused) {
  sdg_hint_t pieces = pieces_of(vector);
  uint64_t contents[2];
  if (!(pieces & SDG_HINT_GLOBAL))
    return SDG_OK;
  if (refused)
    return sdg_together_refused(vector);
  contents_of(vector, contents);
  return sdg_together_make(vector, pieces & SDG_HINT_AXES, false, SDG_HASH_SEED,
                           contents);
}
