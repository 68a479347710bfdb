// SPDX-License-Identifier: Apache-2.0
// Random attention: extents, masks, types and places in memory.
#include "tests/clients/graphs/attention/attention.h"

static uint64_t state;

int64_t draw_in(int64_t lo, int64_t hi) {
  state += 0x9e3779b97f4a7c15U; // splitmix64
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return lo + (int64_t)((z ^ (z >> 31)) % (uint64_t)(hi - lo + 1));
}

bool cuts(char letter) {
  return asked.cut[0] == letter || asked.cut[1] == letter;
}

// What was asked for, or a random one of `count`.
static int choice(int from, int64_t count) {
  int drawn = (int)draw_in(0, count - 1);
  return from >= 0 ? from : drawn;
}

// ---- extents ---------------------------------------------------------------

// Four ranks have at least one of what is cut.
static void extents_draw(case_t *c) {
  c->b = cuts('B') ? draw_in(4, 6) : draw_in(1, 3);
  c->g = cuts('H') ? draw_in(4, 5) : draw_in(1, 3);
  c->h = c->g * draw_in(1, 6 / c->g);
  if (draw_in(0, 3) == 0) { // one head of keys for all
    c->g = 1;
    c->h = cuts('H') ? draw_in(4, 6) : draw_in(1, 6);
  }
  // One head of keys on every rank has two meanings.
  if (asked.split && cuts('H') && c->g == 1 && !asked.shared)
    c->g = c->h;
  if (asked.shared)
    c->g = 1;
  int64_t fewest = cuts('S') ? 8 : 1, most = c->b > 3 ? 40 : 60;
  c->s_q = draw_in(fewest, most);
  c->s_kv = draw_in(0, 3) ? c->s_q : draw_in(fewest, most);
  // A few, whose results are fewer bytes than keys.
  if (asked.same_queries && c->s_q % 4)
    c->s_q = 1 + c->s_q % 8;
  c->d = 8 * draw_in(1, 4);
  c->d_v = draw_in(0, 2) ? c->d : 8 * draw_in(1, 4);
  c->scaled = draw_in(0, 7) > 0;
  c->scale_in_memory = c->scaled && draw_in(0, 7) == 0;
  // As a float has it.
  c->scale = !c->scaled      ? 1
             : draw_in(0, 1) ? (double)(float)(1 / sqrt((double)c->d))
                             : 0.25;
}

static void swap(int64_t *a, int64_t *b) {
  int64_t old = *a;
  *a = *b;
  *b = old;
}

static int mask_of(const case_t *c, int mask) {
  if (c->kind == ONE)
    return MASK_NONE;
  if (c->order != OLD)
    return mask;
  return mask == MASK_RIGHT         ? MASK_CAUSAL
         : mask == MASK_BAND        ? MASK_CAUSAL_LEFT
         : mask == MASK_BAND_BOTTOM ? MASK_CAUSAL_BOTTOM
                                    : mask;
}

// Every row of the whole sees a key, or a forward result would be no number.
static void mask_draw(case_t *c) {
  int mask = mask_of(c, choice(asked.mask, MASKS));
  int64_t right = draw_in(0, 20), left = draw_in(1, 20);
  bool any_right =
      mask == MASK_RIGHT || mask == MASK_BAND || mask == MASK_BAND_BOTTOM;
  c->has_right = mask != MASK_NONE;
  c->has_left = mask >= MASK_CAUSAL_LEFT;
  c->bottom = mask == MASK_CAUSAL_BOTTOM || mask == MASK_BAND_BOTTOM;
  c->right = any_right ? right : 0;
  c->left = c->has_left ? left : 0;
  bool blind = asked.blind && c->kind == BACKWARD;
  if ((c->bottom || c->has_left) && c->s_q > c->s_kv && !blind)
    swap(&c->s_q, &c->s_kv);
}

// ---- arrays ----------------------------------------------------------------

static void array_add(case_t *c, int a, cudnnDataType_t type, bool is_result,
                      int64_t h, int64_t s, int64_t d) {
  c->array[a] = (array_t){.exists = true,
                          .is_result = is_result,
                          .type = type,
                          .whole = {c->b, h, s, d}};
}

static void bias_add(case_t *c, int a, bool is_result) {
  bool row = c->bias_form == BIAS_ROW || c->bias_form == BIAS_KEYS;
  array_add(c, a, c->type, is_result, c->bias_one ? 1 : c->h, row ? 1 : c->s_q,
            c->s_kv);
  c->array[a].whole[BATCH] = c->bias_each ? c->b : 1;
}

static void arrays_add(case_t *c) {
  const cudnnDataType_t f32 = CUDNN_DATA_FLOAT, i32 = CUDNN_DATA_INT32;
  bool back = c->kind == BACKWARD;
  array_add(c, Q, c->type, false, c->h, c->s_q, c->d);
  array_add(c, K, c->type, false, c->g, c->s_kv, c->d);
  array_add(c, V, c->type, false, c->g, c->s_kv, c->d_v);
  array_add(c, O, c->type, !back, c->h, c->s_q, c->d_v);
  if (c->stats || back)
    array_add(c, STATS, f32, !back, c->h, c->s_q, 1);
  if (c->sums) {
    array_add(c, MOST, f32, true, c->h, c->s_q, 1);
    array_add(c, SUM, f32, true, c->h, c->s_q, 1);
  }
  if (c->scale_in_memory) {
    array_add(c, SCALE, f32, false, 1, 1, 1);
    c->array[SCALE].whole[BATCH] = 1;
  }
  if (c->bias)
    bias_add(c, BIAS, false);
  if (c->lengths) {
    array_add(c, LENGTHS_Q, i32, false, 1, 1, 1);
    array_add(c, LENGTHS_KV, i32, false, 1, 1, 1);
  }
  if (!back)
    return;
  array_add(c, D_O, c->type, false, c->h, c->s_q, c->d_v);
  array_add(c, D_Q, c->type, true, c->h, c->s_q, c->d);
  array_add(c, D_K, c->type, true, c->g, c->s_kv, c->d);
  array_add(c, D_V, c->type, true, c->g, c->s_kv, c->d_v);
  if (c->d_bias)
    bias_add(c, D_BIAS, true);
  array_add(c, DELTA, f32, false, c->h, c->s_q, 1);
  array_add(c, GATHERED, f32, false, c->h, c->s_q, c->d);
}

case_t case_draw(uint64_t seed) {
  static const cudnnDataType_t types[] = {CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16,
                                          CUDNN_DATA_FLOAT};
  case_t c = {.seed = seed};
  state = seed * 0x2545f4914f6cdd1dU;
  static const kind_t kinds[] = {FORWARD, BACKWARD, ONE, FORWARD, BACKWARD};
  c.kind = kinds[choice(asked.kind, 5)];
  c.order = c.kind == ONE ? NEW : (order_t)choice(asked.order, ORDERS);
  int type = choice(asked.type, 3);
  // No engine has gradients in float.
  c.type = types[asked.for_hopper && c.kind == BACKWARD ? type % 2 : type];
  extents_draw(&c);
  c.values_are_queries = asked.same;
  if (asked.same) {
    c.kind = FORWARD;
    c.g = c.h;
    c.s_kv = c.s_q;
    c.d_v = c.d;
  }
  mask_draw(&c);
  c.stats = draw_in(0, 2) > 0;
  c.sums = draw_in(0, 7) == 0 && c.kind == FORWARD && c.order != OLD;
  c.stats &= !c.sums;
  c.lengths = choice(asked.lengths, 4) == 1;
  // Pieces of sequences have all columns of a bias, unlike their keys.
  bool whole_bias = draw_in(0, 3) == 0 && !(cuts('S') && is_in_pieces());
  c.bias = (asked.bias || (whole_bias && !asked.shared)) && c.kind != ONE;
  c.bias_each = draw_in(0, 1);
  c.bias_one = draw_in(0, 1);
  // Engines have the gradient of a bias where a scale is by value.
  bool by_value = c.scaled && !c.scale_in_memory;
  c.d_bias = draw_in(0, 1) && c.bias && c.kind == BACKWARD &&
             (by_value || !asked.for_hopper);
  c.direct = c.d_bias || draw_in(0, 4) == 0;
  c.layout = (layout_t)draw_in(0, LAYOUTS - 1);
  // A tag of keys would be one of queries.
  bool tagged = asked.shared || asked.same_keys || asked.same_queries;
  if (c.layout == PACKED &&
      (c.s_q != c.s_kv || c.d != c.d_v || tagged || asked.same))
    c.layout = BSHD;
  if (asked.bias && asked.split)
    c.bias_form = asked.blocks ? BIAS_BLOCKS
                  : asked.columns
                      ? (bias_form_t)draw_in(BIAS_COLUMNS, BIAS_KEYS)
                      : (bias_form_t)draw_in(BIAS_ROWS, BIAS_ROW);
  if (asked.split) {
    c.sums = c.scale_in_memory = c.d_bias = false;
    c.lengths &= (!cuts('S') || asked.lengths == 1) && !asked.shared;
    c.bottom &= !(cuts('S') && c.lengths); // which are those of a piece
  }
  arrays_add(&c);
  return c;
}

const char *case_text(const case_t *c) {
  static const char *const kinds[] = {"forward", "backward", "one"};
  static const char *const orders[] = {"new", "old", "shuffled"};
  static const char *const layouts[] = {"bshd", "bhsd", "sbhd", "packed"};
  static const char *const forms[] = {" bias",         " whole bias",
                                      " bias row",     " bias columns",
                                      " bias of keys", " bias blocks"};
  static char text[200];
  char bounds[2][24] = {"", ""};
  if (c->has_right)
    snprintf(bounds[0], sizeof bounds[0], " r %ld", (long)c->right);
  if (c->has_left)
    snprintf(bounds[1], sizeof bounds[1], " l %ld", (long)c->left);
  snprintf(text, sizeof text,
           "%s %s %s %s b %ld h %ld/%ld s %ldx%ld d %ld/%ld"
           "%s%s%s%s%s%s%s%s%s%s",
           kinds[c->kind], orders[c->order],
           c->type == CUDNN_DATA_HALF    ? "f16"
           : c->type == CUDNN_DATA_FLOAT ? "f32"
                                         : "bf16",
           layouts[c->layout], (long)c->b, (long)c->h, (long)c->g, (long)c->s_q,
           (long)c->s_kv, (long)c->d, (long)c->d_v, bounds[0], bounds[1],
           c->bottom ? " bottom" : "", c->lengths ? " lengths" : "",
           c->bias ? forms[c->bias_form] : "", c->d_bias ? " d_bias" : "",
           c->stats ? " stats" : "", c->sums ? " sums" : "",
           !c->scaled           ? " unscaled"
           : c->scale_in_memory ? " scale in memory"
                                : "",
           c->direct ? " direct" : "");
  return text;
}
