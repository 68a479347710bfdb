// SPDX-License-Identifier: Apache-2.0
// Records which extents windowed calls computed from which.
#include "rules/window/chain.h"

#include <pthread.h>
#include <string.h>

#include "src/geometry/part.h"

enum { LINKS = 128, DEPTH = 32 };

typedef struct link {
  char dim[4];
  int64_t x, y;
  sdg_window_t window;
} link_t;

static struct {
  pthread_mutex_t lock;
  int links;
  link_t link[LINKS];
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

void sdg_chain_note(const char *dim, int64_t x_extent, int64_t y_extent,
                    const sdg_window_t *window) {
  link_t link = {.x = x_extent, .y = y_extent, .window = *window};
  if (strlen(dim) >= sizeof link.dim)
    return;
  strcpy(link.dim, dim);
  pthread_mutex_lock(&known.lock);
  int i = 0;
  while (i < known.links &&
         (strcmp(known.link[i].dim, dim) != 0 || known.link[i].x != x_extent ||
          known.link[i].y != y_extent))
    i++;
  if (i == known.links && i < LINKS)
    known.link[known.links++] = link;
  pthread_mutex_unlock(&known.lock);
}

// The call that computed this extent from a larger one.
static const link_t *made_by(const char *dim, int64_t extent) {
  for (int i = 0; i < known.links; i++)
    if (strcmp(known.link[i].dim, dim) == 0 && known.link[i].y == extent &&
        known.link[i].x > extent)
      return &known.link[i];
  return NULL;
}

// Whether pieces cut at multiples of `unit` add up to the whole in every link;
// `chain` begins with the last link.
static bool adds_up(const link_t *chain, int links, int64_t unit, int pieces) {
  sdg_part_t part;
  bool good = true;
  if (sdg_part_divide(chain[links - 1].x, pieces, SDG_PART_EVEN, unit, &part) !=
      SDG_OK)
    return false;
  for (int p = 0; p < part.pieces; p++)
    good &= sdg_part_size(&part, p) > 0;
  // Follows the sizes of the pieces; those of the whole are known.
  for (int upto = links - 1; good && upto >= 0; upto--) {
    int64_t sum = 0;
    for (int p = 0; p < part.pieces; p++) {
      int64_t size = sdg_part_size(&part, p);
      for (int i = links - 1; i >= upto; i--)
        size = size > 0 ? sdg_window_outputs(&chain[i].window, size) : 0;
      good &= size > 0;
      sum += size;
    }
    good &= sum == chain[upto].y;
  }
  sdg_part_fini(&part);
  return good;
}

bool sdg_chain_unit(const char *dim, int64_t x_extent, int64_t y_extent,
                    const sdg_window_t *window, int pieces, int64_t *out_extent,
                    int64_t *out_unit) {
  link_t chain[DEPTH] = {{.x = x_extent, .y = y_extent, .window = *window}};
  int64_t unit = window->stride;
  int links = 1;
  pthread_mutex_lock(&known.lock);
  const link_t *before = made_by(dim, x_extent);
  while (before && links < DEPTH) {
    unit *= before->window.stride;
    chain[links++] = *before;
    before = made_by(dim, before->x);
  }
  pthread_mutex_unlock(&known.lock);
  *out_extent = chain[links - 1].x;
  *out_unit = unit;
  return adds_up(chain, links, unit, pieces);
}
