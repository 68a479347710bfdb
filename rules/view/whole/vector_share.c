// SPDX-License-Identifier: Apache-2.0
// Which elements of vectors in pieces each rank computes.
#include "rules/view/whole/vector_share.h"

#include "src/base/hash.h"

// A tensor in the vector is a nest of dimensions in the order of its strides;
// some are split. Bytes between its elements belong to the rank that has the
// row before them, so that each byte belongs to exactly one piece.

enum { TILES = 16, CUTS = SDG_VECTOR_DIMS };
static const int64_t OUTERMOST = INT64_MAX / 4;

// One dimension of the nest. Before conversion its numbers are bytes.
typedef struct cut {
  int64_t extent, step;
  const sdg_split_t *split; // NULL: whole on every rank
  const sdg_part_t *part;
  // An offset of the part is at (offset * scale - phase) / unit, rounded up.
  int64_t scale, phase, unit;
} cut_t;

// The elements [lo, hi) of a vector lie in the memory of one tensor.
typedef struct tile {
  uint64_t number; // of the tensor
  int64_t lo, hi;
  int64_t origin; // the element at coordinates 0, which may be before `lo`
  sdg_axes_t axes;
  int cuts;
  cut_t cut[CUTS];
} tile_t;

typedef struct strip {
  uintptr_t at;
  int64_t n, step_bytes, elem_bytes;
} strip_t;

static int64_t modulo(int64_t a, int64_t b) {
  return a - sdg_floor_div(a, b) * b;
}

static int64_t edge_of(const cut_t *cut, int piece) {
  if (piece == 0)
    return 0;
  if (piece == cut->part->pieces)
    return cut->extent;
  int64_t edge = sdg_ceil_div(
      cut->part->offset[piece] * cut->scale - cut->phase, cut->unit);
  return edge < cut->extent ? edge : cut->extent;
}

static sdg_range_t range_of(const cut_t *cut, const sdg_mesh_t *mesh,
                            int rank) {
  if (!cut->split)
    return (sdg_range_t){0, cut->extent};
  int piece = sdg_split_piece(cut->split, mesh, rank);
  return (sdg_range_t){edge_of(cut, piece), edge_of(cut, piece + 1)};
}

// ---- a tensor in a vector --------------------------------------------------

// The dimensions of more than one element by their strides, largest first.
static int dims_order(const sdg_layout_t *layout, int *out_order) {
  int used = 0;
  for (int d = 0; d < layout->dims; d++) {
    if (layout->extent[d] == 1)
      continue;
    int i = used++;
    for (; i > 0 && layout->stride[out_order[i - 1]] < layout->stride[d]; i--)
      out_order[i] = out_order[i - 1];
    out_order[i] = d;
  }
  return used;
}

static cut_t cut_of(const sdg_buffer_t *buffer, int d) {
  bool split = buffer->placement.split[d].axes > 0;
  return (cut_t){.extent = buffer->layout.extent[d],
                 .step = buffer->layout.stride[d] * buffer->layout.elem_bytes,
                 .split = split ? &buffer->placement.split[d] : NULL,
                 .part = split ? &buffer->placement.part[d] : NULL,
                 .scale = 1,
                 .unit = 1};
}

// Makes the nest, in bytes. A dimension that is not split is merged with the
// one around it. So the nest has one cut per split, at most as many as the mesh
// has axes, and perhaps one more around them.
static bool nest_make(const sdg_buffer_t *buffer, tile_t *tile) {
  const sdg_layout_t *layout = &buffer->layout;
  int order[SDG_DIMS_MAX], dims = dims_order(layout, order);
  tile->cuts = 0;
  for (int d = 0; d < layout->dims; d++)
    if (layout->extent[d] == 1 && buffer->placement.split[d].axes > 0) {
      cut_t *mask = &tile->cut[tile->cuts++];
      *mask = cut_of(buffer, d);
      mask->step = OUTERMOST;
    }
  int masks = tile->cuts;
  for (int i = 0; i <= dims; i++) {
    cut_t *around = tile->cuts > masks ? &tile->cut[tile->cuts - 1] : NULL;
    cut_t next = {.extent = layout->elem_bytes, .step = 1, .scale = 1};
    if (i < dims)
      next = cut_of(buffer, order[i]);
    if (next.step < 1)
      return false;
    if (around) {
      int64_t room = around->step / next.step;
      if (around->step % next.step || room < next.extent)
        return false;
      next.extent = room;
    }
    if (around && !next.split) {
      around->extent *= next.extent;
      around->step = next.step;
      around->scale *= next.extent;
    } else {
      tile->cut[tile->cuts++] = next;
    }
  }
  return true;
}

// Whether a cut at `bytes` from the tensor's first byte goes through an element
// of the vector. All dimensions but the innermost begin with the same phase.
static bool crosses(const strip_t *strip, int64_t phase, int64_t bytes) {
  int64_t after = modulo(bytes - phase, strip->step_bytes);
  return after > 0 && after < strip->elem_bytes;
}

// Converts the nest from bytes to elements of the vector.
static bool nest_convert(const strip_t *strip, int64_t phase, tile_t *tile) {
  cut_t *inner = &tile->cut[tile->cuts - 1];
  for (cut_t *cut = tile->cut; cut < inner; cut++) {
    if (cut->step == OUTERMOST)
      continue;
    if (cut->step % strip->step_bytes)
      return false;
    cut->step /= strip->step_bytes;
  }
  bool around = inner > tile->cut && inner[-1].step != OUTERMOST;
  inner->extent = around ? inner[-1].step : tile->hi - tile->origin;
  inner->step = 1;
  inner->phase = phase;
  inner->unit = strip->step_bytes;
  for (int i = 1; inner->split && i < inner->part->pieces; i++)
    if (crosses(strip, phase, inner->part->offset[i] * inner->scale))
      return false;
  return true;
}

static bool tile_make(const sdg_buffer_t *buffer, const strip_t *strip,
                      tile_t *tile) {
  int64_t from = (int64_t)(buffer->at - strip->at);
  int64_t bytes = (int64_t)sdg_buffer_span(buffer).bytes;
  int64_t phase = modulo(-from, strip->step_bytes);
  tile->number = buffer->number;
  tile->axes = buffer->axes;
  tile->origin = sdg_ceil_div(from, strip->step_bytes);
  tile->lo = tile->origin > 0 ? tile->origin : 0;
  tile->hi = sdg_ceil_div(from + bytes, strip->step_bytes);
  if (tile->hi > strip->n)
    tile->hi = strip->n;
  return !crosses(strip, phase, 0) && !crosses(strip, phase, bytes) &&
         (tile->lo >= tile->hi ||
          (nest_make(buffer, tile) && nest_convert(strip, phase, tile)));
}

// Lists the tensors in a vector by their addresses; -1: too many, they overlap,
// or one of them has no tile.
static int tiles_make(const sdg_buffers_t *table, const strip_t *strip,
                      tile_t *tile) {
  int tiles = 0;
  sdg_span_t span = {strip->at, (size_t)((strip->n - 1) * strip->step_bytes +
                                         strip->elem_bytes)};
  for (int i = 0; i < table->buffers; i++) {
    tile_t next;
    if (!sdg_span_overlap(sdg_buffer_span(table->buffer[i]), span))
      continue;
    if (tiles == TILES || !tile_make(table->buffer[i], strip, &next))
      return -1;
    if (next.lo >= next.hi)
      continue;
    int at = tiles++;
    for (; at > 0 && tile[at - 1].lo > next.lo; at--)
      tile[at] = tile[at - 1];
    tile[at] = next;
  }
  for (int i = 1; i < tiles; i++)
    if (tile[i - 1].hi > tile[i].lo)
      return -1;
  return tiles;
}

// ---- two vectors -----------------------------------------------------------

static bool cut_equal(const cut_t *a, const cut_t *b) {
  if (a->extent != b->extent || a->step != b->step || !a->split != !b->split)
    return false;
  if (!a->split)
    return true;
  if (a->split->axes != b->split->axes || a->part->pieces != b->part->pieces)
    return false;
  for (int i = 0; i < a->split->axes; i++)
    if (a->split->axis[i] != b->split->axis[i])
      return false;
  for (int i = 0; i < a->part->pieces; i++)
    if (edge_of(a, i) != edge_of(b, i))
      return false;
  return true;
}

static bool tiles_equal(const tile_t *a, const tile_t *b, int tiles) {
  for (int i = 0; i < tiles; i++) {
    if (a[i].lo != b[i].lo || a[i].hi != b[i].hi ||
        a[i].origin != b[i].origin || a[i].axes != b[i].axes ||
        a[i].cuts != b[i].cuts)
      return false;
    for (int c = 0; c < a[i].cuts; c++)
      if (!cut_equal(&a[i].cut[c], &b[i].cut[c]))
        return false;
  }
  return true;
}

// ---- the blocks ------------------------------------------------------------

typedef struct maker {
  const tile_t *tile;
  sdg_range_t own[CUTS], range[CUTS];
  bool counts; // this rank computes its piece of the tile
  int made;    // blocks of all ranks together
  sdg_vector_share_t *out;
} maker_t;

// Adds this rank's block of a box of the tile.
static void block_add(maker_t *maker) {
  const tile_t *tile = maker->tile;
  sdg_vector_block_t block = {.first = tile->origin};
  int64_t count = 1;
  if (++maker->made > SDG_VECTOR_BLOCKS || !maker->counts)
    return;
  for (int c = 0; c < tile->cuts; c++) {
    const sdg_range_t *a = &maker->range[c], *b = &maker->own[c];
    int64_t lo = a->lo > b->lo ? a->lo : b->lo;
    int64_t hi = a->hi < b->hi ? a->hi : b->hi;
    if (lo >= hi)
      return;
    block.first += lo * tile->cut[c].step;
    if (hi - lo == 1 && c < tile->cuts - 1)
      continue;
    block.extent[block.dims] = hi - lo;
    block.step[block.dims++] = tile->cut[c].step;
    count *= hi - lo;
  }
  maker->out->count += count;
  maker->out->block[maker->out->blocks++] = block;
}

// Cuts the numbers [lo, hi) of the nest from dimension `from` on into boxes.
// Example: 3 to 17 of rows of 5 are 3 to 4 of row 0, rows 1 and 2, and 0 and 1
// of row 3.
static void boxes_add(maker_t *maker, int from, int64_t lo, int64_t hi) {
  const tile_t *tile = maker->tile;
  int64_t step = tile->cut[from].step;
  sdg_range_t *range = &maker->range[from];
  if (from == tile->cuts - 1) {
    *range = (sdg_range_t){lo, hi};
    block_add(maker);
    return;
  }
  int64_t row = lo / step;
  if (lo % step) {
    int64_t end = hi < (row + 1) * step ? hi : (row + 1) * step;
    *range = (sdg_range_t){row, row + 1};
    boxes_add(maker, from + 1, lo - row * step, end - row * step);
    row++;
  }
  if (row < hi / step) {
    *range = (sdg_range_t){row, hi / step};
    for (int c = from + 1; c < tile->cuts; c++)
      maker->range[c] = (sdg_range_t){0, tile->cut[c].extent};
    block_add(maker);
    row = hi / step;
  }
  if (row * step < hi) {
    *range = (sdg_range_t){row, row + 1};
    boxes_add(maker, from + 1, 0, hi - row * step);
  }
}

static bool at_zero(const sdg_mesh_t *mesh, int rank, sdg_axes_t axes) {
  int coord[SDG_AXES_MAX];
  sdg_mesh_coords(mesh, rank, coord);
  for (int a = 0; a < mesh->axes; a++)
    if (axes >> a & 1 && coord[a])
      return false;
  return true;
}

// Elements that every rank has count for the first rank along the axes.
static void common_add(maker_t *maker, int64_t lo, int64_t hi) {
  const tile_t common = {
      .origin = lo, .cuts = 1, .cut = {{.extent = hi - lo, .step = 1}}};
  if (lo >= hi)
    return;
  maker->tile = &common;
  maker->range[0] = maker->own[0] = (sdg_range_t){0, hi - lo};
  block_add(maker);
}

static bool blocks_make(const tile_t *tile, int tiles, int64_t n,
                        const sdg_mesh_t *mesh, int self,
                        sdg_vector_share_t *out) {
  maker_t maker = {.out = out};
  int64_t done = 0;
  *out = (sdg_vector_share_t){.axes = 0};
  for (int i = 0; i < tiles; i++)
    out->axes |= tile[i].axes;
  for (int i = 0; i < tiles; i++) {
    maker.counts = at_zero(mesh, self, out->axes);
    common_add(&maker, done, tile[i].lo);
    maker.tile = &tile[i];
    maker.counts = at_zero(mesh, self, out->axes & ~tile[i].axes);
    for (int c = 0; c < tile[i].cuts; c++)
      maker.own[c] = range_of(&tile[i].cut[c], mesh, self);
    boxes_add(&maker, 0, tile[i].lo - tile[i].origin,
              tile[i].hi - tile[i].origin);
    done = tile[i].hi;
  }
  maker.counts = at_zero(mesh, self, out->axes);
  common_add(&maker, done, n);
  return maker.made <= SDG_VECTOR_BLOCKS;
}

static bool strip_make(const void *at, int64_t n, int64_t inc, int type,
                       strip_t *out) {
  int64_t each = (int64_t)sdg_vector_type_bytes(type);
  *out = (strip_t){(uintptr_t)at, n, (inc < 0 ? -inc : inc) * each, each};
  return at && inc && each;
}

static uint64_t tiles_hash(uint64_t hash, const tile_t *tile, int tiles) {
  hash = sdg_hash_word(hash, (uint64_t)tiles);
  for (int i = 0; i < tiles; i++) {
    hash = sdg_hash_word(hash, tile[i].number);
    hash = sdg_hash_word(hash, (uint64_t)tile[i].origin);
  }
  return hash;
}

static uint64_t sizes_hash(const sdg_vector_t *vector) {
  const int64_t word[] = {vector->n, vector->incx, vector->incy, vector->type_x,
                          vector->type_y};
  uint64_t hash = SDG_HASH_SEED;
  for (size_t i = 0; i < sizeof word / sizeof *word; i++)
    hash = sdg_hash_word(hash, (uint64_t)word[i]);
  return hash;
}

bool sdg_vector_share_make(const sdg_buffers_t *table,
                           const sdg_vector_t *vector, const sdg_mesh_t *mesh,
                           int self, sdg_vector_share_t *out) {
  tile_t x_tile[TILES], y_tile[TILES];
  strip_t x, y;
  bool two = vector->op == SDG_VECTOR_DOT;
  if (vector->n < 1 || table->buffers == 0 ||
      !strip_make(vector->x, vector->n, vector->incx, vector->type_x, &x) ||
      (two ? !strip_make(vector->y, vector->n, vector->incy, vector->type_y,
                         &y) ||
                 (vector->incx < 0) != (vector->incy < 0)
           : vector->incx < 0))
    return false;
  int x_tiles = tiles_make(table, &x, x_tile);
  int y_tiles = two ? tiles_make(table, &y, y_tile) : 0;
  if (x_tiles < 0 || y_tiles < 0 || x_tiles + y_tiles == 0)
    return false;
  // The pieces of both agree, or one of them is whole on every rank.
  if (x_tiles && y_tiles &&
      (x_tiles != y_tiles || !tiles_equal(x_tile, y_tile, x_tiles)))
    return false;
  if (!blocks_make(x_tiles ? x_tile : y_tile, x_tiles ? x_tiles : y_tiles,
                   vector->n, mesh, self, out))
    return false;
  out->hash = tiles_hash(sizes_hash(vector), x_tile, x_tiles);
  out->hash = tiles_hash(out->hash, y_tile, y_tiles);
  return true;
}
