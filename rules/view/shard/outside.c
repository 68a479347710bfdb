// SPDX-License-Identifier: Apache-2.0
// Hints of memory that the program's own calls write.
#include "rules/view/shard/outside.h"

#include <stdatomic.h>
#include <stdio.h>

#include "rules/memory/memory.h"
#include "rules/reuse/prefetch.h"
#include "rules/step/together.h"
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

// Programs may well read their piece, to write it to a file: it is said once,
// by one rank, and not where the rules say what values of pieces are.
static void read_say(const sdg_memory_access_t *memory, sdg_hint_t pieces) {
  static atomic_bool said;
  if ((pieces & (SDG_HINT_LOCAL | SDG_HINT_GLOBAL)) ||
      !several_pieces(pieces & SDG_HINT_AXES) || sdg_job_rank() != 0 ||
      !*sdg_options_get()->report || atomic_exchange(&said, true))
    return;
  sdg_log("%s reads a tensor in pieces: each rank gets only its own piece, and "
          "values that the program computes from it are those of the piece (to "
          "say that this is meant, write values = local in the rules, or "
          "--piece-values local)",
          memory->name);
}

void sdg_outside_touch(const sdg_memory_access_t *memory) {
  sdg_hint_t from = 0, pieces = 0;
  bool to_host = false;
  bool rows = false;
  for (int i = 0; i < memory->accesses; i++) {
    const sdg_access_t *access = &memory->access[i];
    if (!memory->copies || !access->reads)
      continue;
    from = sdg_hint_around((const void *)access->at, span_of(access));
    pieces = sdg_hint_within((const void *)access->at, span_of(access));
    rows |= access->height > 1 && access->pitch != access->width;
  }
  for (int i = 0; i < memory->accesses; i++) {
    const sdg_access_t *access = &memory->access[i];
    const void *at = (const void *)access->at;
    if (!access->writes)
      continue;
    to_host |= pieces && !sdg_memory_holds(at);
    bool gaps = rows || (access->height > 1 && access->pitch != access->width);
    sdg_prefetch_written(at, span_of(access));
    // What the program does to host memory is not seen.
    sdg_hint_put(at, span_of(access), gaps,
                 from && sdg_memory_holds(at) ? from : 0);
  }
  if (to_host)
    read_say(memory, pieces);
  if (memory->everything) {
    sdg_prefetch_written(NULL, SIZE_MAX);
    sdg_hint_forget();
  }
}

void sdg_outside_written(const void *at, size_t bytes) {
  sdg_prefetch_written(at, bytes);
  sdg_hint_put(at, bytes, false, 0);
}

// ---- vectors ---------------------------------------------------------------

// The memory of a vector, from its first byte to its last.
typedef struct strip {
  const void *at;
  size_t bytes;
  bool gaps;
} strip_t;

static strip_t strip_of(const void *at, int64_t n, int64_t inc, int type) {
  int64_t step = inc < 0 ? -inc : inc;
  size_t each = sdg_vector_type_bytes(type);
  if (n < 1 || !at)
    return (strip_t){NULL, 0, false};
  return (strip_t){at, (size_t)((n - 1) * step + 1) * each, step != 1};
}

static void put(const strip_t *strip, sdg_hint_t hint) {
  sdg_hint_put(strip->at, strip->bytes, strip->gaps, hint);
}

void sdg_outside_vector(const sdg_vector_t *vector) {
  strip_t x = strip_of(vector->x, vector->n, vector->incx, vector->type_x);
  strip_t y = strip_of(vector->y, vector->n, vector->incy, vector->type_y);
  sdg_hint_t of_x = sdg_hint_around(x.at, x.bytes);
  sdg_hint_t of_y = sdg_hint_around(y.at, y.bytes);
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
    if (of_x != of_y)
      put(&y, sdg_hint_join(of_x, of_y));
    break;
  case SDG_VECTOR_SWAP:
    if (of_x != of_y) {
      put(&x, of_y);
      put(&y, of_x);
    }
    break;
  case SDG_VECTOR_ROT:
    if (of_x != of_y) {
      put(&x, sdg_hint_join(of_x, of_y));
      put(&y, sdg_hint_join(of_x, of_y));
    }
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

// What of the vectors is in pieces; 0: none, or there is one piece.
static sdg_hint_t pieces_of(const sdg_vector_t *vector) {
  strip_t x = strip_of(vector->x, vector->n, vector->incx, vector->type_x);
  strip_t y = strip_of(vector->y, vector->n, vector->incy, vector->type_y);
  sdg_hint_t a = sdg_hint_within(x.at, x.bytes);
  sdg_hint_t b = sdg_hint_within(y.at, y.bytes);
  sdg_hint_t pieces = sdg_hint_join(a, b);
  return several_pieces(pieces & SDG_HINT_AXES) ? pieces : 0;
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
      "%s of %lld elements at %p, which are this rank's piece over %s: write "
      "values = global (of all pieces together), local (of each rank's own) or "
      "error (this message) in the section; local also if a kernel of the "
      "program has written there since, in memory that a pool returned again",
      vector->entry_name, (long long)vector->n, vector->x, axes);
}

sdg_status_t sdg_outside_combine(const sdg_vector_t *vector, bool refused) {
  sdg_hint_t pieces = pieces_of(vector);
  if (!(pieces & SDG_HINT_GLOBAL))
    return SDG_OK;
  return refused ? sdg_together_refused(vector)
                 : sdg_together_make(vector, pieces & SDG_HINT_AXES,
                                     sdg_job_rank(), SDG_HASH_SEED);
}
