// SPDX-License-Identifier: Apache-2.0
// Random neighbourhood attention, forward and backward, on tagged tensors with
// pieces that may be empty. All ranks draw the same calls. Each rank checks its
// pieces against a loop in float64, and that a repeated call gives the same
// bits. If the run is recorded, it also checks that it received exactly the
// keys, values and gradients that it needs.
//
// usage: neighborhood_program RANK MESH SEED TRIALS, MESH as "a=2,b=3"
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/sundog.h"
#include "tests/calls.h"

enum { AXES = 4, RANKS = 8, DIMS = 5, GRID = 3, ROOM = 1 << 14, KEYS = 16 };
enum { Q, K, V, O, DO, DQ, DK, DV, TENSORS };
static const char *const names[TENSORS] = {"q",  "k",  "v",  "o",
                                           "do", "dq", "dk", "dv"};

static struct {
  int axes, size[AXES], ranks, me;
  unsigned long long state;
} g;

static int draw(int below) {
  g.state = g.state * 6364136223846793005ull + 1442695040888963407ull;
  return (int)((g.state >> 33) % (unsigned)below);
}

static void mesh_read(const char *text) {
  g.ranks = 1;
  for (const char *at = text; at; at = strchr(at, ',')) {
    at += *at == ',';
    g.size[g.axes] = atoi(at + 2);
    g.ranks *= g.size[g.axes++];
  }
}

static void coords(int rank, int *out) {
  for (int a = g.axes - 1; a >= 0; a--) {
    out[a] = rank % g.size[a];
    rank /= g.size[a];
  }
}

// ---- one trial -------------------------------------------------------------

typedef struct box {
  int lo[DIMS], hi[DIMS];
} box_t;

static struct {
  sundog_neighborhood_t how;
  int dims, whole[DIMS], channels[2]; // channels of a head in q, in v
  int dim_of[AXES];                   // dimension that the axis cuts; -1: none
  int first[2][DIMS][RANKS + 1];      // where pieces of q, of k begin
  char label[64];
  bool twice, nhwc;
} t;

static bool of_values(int tensor) {
  return tensor == V || tensor == O || tensor == DO || tensor == DV;
}

static bool of_keys(int tensor) {
  return tensor == K || tensor == V || tensor == DK || tensor == DV;
}

static void part_draw(int extent, int pieces, int *first) {
  first[0] = 0;
  first[pieces] = extent;
  for (int i = 1; i < pieces; i++)
    first[i] = draw(extent + 1);
  for (int i = 1; i < pieces; i++)
    for (int k = i; k > 1 && first[k] < first[k - 1]; k--) {
      int other = first[k];
      first[k] = first[k - 1];
      first[k - 1] = other;
    }
}

static void split_draw(void) {
  static const char *const letters[] = {"NCW", "NCHW", "NCDHW"};
  bool other_parts = draw(2);
  t.label[0] = '\0';
  for (int a = 0; a < g.axes; a++) {
    int d = draw(6);
    t.dim_of[a] = d < 2 ? d - 1 : 2 + draw(t.how.dims);
  }
  if (t.dim_of[0] < 0)
    t.dim_of[0] = 2;
  for (int d = 0; d < t.dims; d++) {
    int pieces = 1;
    for (int a = 0; a < g.axes; a++) {
      if (t.dim_of[a] != d)
        continue;
      if (pieces == 1)
        sprintf(t.label + strlen(t.label), "%s%c:", *t.label ? ", " : "",
                letters[t.dims - 3][d]);
      sprintf(t.label + strlen(t.label), "%s%c", pieces > 1 ? "+" : "",
              'a' + a);
      pieces *= g.size[a];
    }
    part_draw(t.whole[d], pieces, t.first[0][d]);
    memcpy(t.first[1][d], t.first[0][d], sizeof t.first[0][d]);
    if (other_parts)
      part_draw(t.whole[d], pieces, t.first[1][d]);
  }
}

static void trial_draw(void) {
  memset(&t, 0, sizeof t);
  t.how.dims = 1 + draw(GRID);
  t.dims = 2 + t.how.dims + draw(6 - t.how.dims - 2);
  t.how.heads = 1 + draw(2);
  t.how.cut = draw(3) == 0;
  t.how.scale = draw(2) ? 0.75 : 0;
  t.channels[0] = 1 + draw(3);
  t.channels[1] = 1 + draw(3);
  t.twice = draw(2);
  t.nhwc = draw(2);
  t.whole[0] = 1 + draw(2);
  static const int most[GRID] = {40, 9, 5}, widest[GRID] = {9, 5, 3};
  for (int d = 0; d < t.dims - 2; d++) {
    t.whole[2 + d] = 1;
    if (d >= t.how.dims)
      continue;
    t.whole[2 + d] = 1 + draw(most[t.how.dims - 1]);
    t.whole[2 + d] += draw(most[t.how.dims - 1] / 2);
    t.how.kernel[d] = 1 + draw(widest[t.how.dims - 1]);
    t.how.dilation[d] = 1 + draw(3);
    t.how.causal[d] = draw(3) == 0;
    while (!t.how.cut && t.how.kernel[d] * t.how.dilation[d] > t.whole[2 + d]) {
      t.how.kernel[d] = 1 + draw(t.how.kernel[d]);
      t.how.dilation[d] = 1 + draw(t.how.dilation[d]);
    }
  }
  split_draw();
}

static int channels_of(int tensor) {
  return t.how.heads * t.channels[of_values(tensor)];
}

static box_t piece_of(int tensor, int rank) {
  int at[AXES];
  box_t box;
  coords(rank, at);
  for (int d = 0; d < t.dims; d++) {
    int piece = 0;
    for (int a = 0; a < g.axes; a++)
      if (t.dim_of[a] == d)
        piece = piece * g.size[a] + at[a];
    const int *first = t.first[of_keys(tensor)][d];
    box.lo[d] = d == 1 ? 0 : first[piece];
    box.hi[d] = d == 1 ? channels_of(tensor) : first[piece + 1];
  }
  return box;
}

static long count_of(const box_t *box) {
  long count = 1;
  for (int d = 0; d < t.dims; d++)
    count *= box->hi[d] > box->lo[d] ? box->hi[d] - box->lo[d] : 0;
  return count;
}

// ---- the whole result, in float64 ------------------------------------------

static double tensor[TENSORS][ROOM];

static int place(int which, int n, int c, const int *at) {
  int index = n * channels_of(which) + c;
  for (int d = 0; d < t.dims - 2; d++)
    index = index * t.whole[2 + d] + at[d];
  return index;
}

static int window(int d, int i, int *keys) {
  if (d >= t.how.dims) {
    keys[0] = 0;
    return 1;
  }
  int step = t.how.dilation[d], kernel = t.how.kernel[d];
  int place_in = i / step, members = 0, count = 0;
  for (int j = i % step; j < t.whole[2 + d]; j += step)
    members++;
  int from = place_in - (t.how.causal[d] ? kernel - 1 : kernel / 2);
  if (!t.how.causal[d] && !t.how.cut) {
    from = from < 0 ? 0 : from;
    from = from > members - kernel ? members - kernel : from;
  }
  for (int p = from; p < from + kernel; p++)
    if (p >= 0 && p < members)
      keys[count++] = i % step + p * step;
  return count;
}

// Writes the grid coordinates of a query's keys; returns their number.
static int neighbors(const int *at, int (*out)[GRID]) {
  int keys[GRID][KEYS] = {{0}}, counts[GRID] = {1, 1, 1}, count = 0;
  for (int d = 0; d < t.dims - 2; d++)
    counts[d] = window(d, at[d], keys[d]);
  for (int a = 0; a < counts[0]; a++)
    for (int b = 0; b < counts[1]; b++)
      for (int c = 0; c < counts[2]; c++, count++) {
        out[count][0] = keys[0][a];
        out[count][1] = keys[1][b];
        out[count][2] = keys[2][c];
      }
  return count;
}

static void query_compute(int n, int head, const int *at) {
  static int key[KEYS * KEYS * KEYS][GRID];
  static double p[KEYS * KEYS * KEYS], dp[KEYS * KEYS * KEYS];
  int cq = t.channels[0], cv = t.channels[1], count = neighbors(at, key);
  double scale = t.how.scale != 0 ? t.how.scale : 1 / sqrt(cq);
  double most = -INFINITY, sum = 0, mean = 0;
  for (int i = 0; i < count; i++) {
    p[i] = dp[i] = 0;
    for (int c = head * cq; c < (head + 1) * cq; c++)
      p[i] += scale * tensor[Q][place(Q, n, c, at)] *
              tensor[K][place(K, n, c, key[i])];
    most = p[i] > most ? p[i] : most;
  }
  for (int i = 0; i < count; i++)
    sum += p[i] = exp(p[i] - most);
  for (int i = 0; i < count; i++) {
    p[i] /= sum;
    for (int c = head * cv; c < (head + 1) * cv; c++) {
      double g_o = tensor[DO][place(DO, n, c, at)];
      double v = tensor[V][place(V, n, c, key[i])];
      tensor[O][place(O, n, c, at)] += p[i] * v;
      tensor[DV][place(DV, n, c, key[i])] += p[i] * g_o;
      dp[i] += g_o * v;
    }
    mean += p[i] * dp[i];
  }
  for (int i = 0; i < count; i++)
    for (int c = head * cq; c < (head + 1) * cq; c++) {
      double ds = scale * p[i] * (dp[i] - mean);
      tensor[DQ][place(DQ, n, c, at)] += ds * tensor[K][place(K, n, c, key[i])];
      tensor[DK][place(DK, n, c, key[i])] += ds * tensor[Q][place(Q, n, c, at)];
    }
}

static void whole_compute(void) {
  memset(tensor, 0, sizeof tensor);
  for (int i = 0; i < TENSORS; i++)
    for (int e = 0; (i <= V || i == DO) && e < ROOM; e++)
      tensor[i][e] = draw(1024) / 512.0 - 1;
  int at[GRID] = {0}, d;
  do {
    for (int n = 0; n < t.whole[0]; n++)
      for (int head = 0; head < t.how.heads; head++)
        query_compute(n, head, at);
    for (d = t.dims - 3; d >= 0 && ++at[d] == t.whole[2 + d]; d--)
      at[d] = 0;
  } while (d >= 0);
}

// ---- pieces ----------------------------------------------------------------

static struct {
  cudnnTensorDescriptor_t descriptor;
  void *data;
  int stride[DIMS];
  box_t box;
  bool empty;
} piece[TENSORS];

static void piece_describe(int i) {
  int extent[DIMS], order[DIMS], stride = 1;
  piece[i].box = piece_of(i, g.me);
  piece[i].empty = count_of(&piece[i].box) == 0;
  for (int d = 0; d < t.dims; d++) {
    extent[d] = piece[i].box.hi[d] - piece[i].box.lo[d];
    extent[d] = extent[d] < 1 ? 1 : extent[d];
    order[d] = !t.nhwc || d == 0 ? d : d == t.dims - 1 ? 1 : d + 1;
  }
  for (int k = t.dims - 1; k >= 0; k--) {
    piece[i].stride[order[k]] = stride;
    stride *= extent[order[k]];
  }
  CHECK(cudnnSetTensorNdDescriptor(
      piece[i].descriptor, t.twice ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
      t.dims, extent, piece[i].stride));
}

// Walks the piece: writes its values, or counts those that are wrong.
static int piece_walk(int i, char *host, bool writes) {
  const box_t *box = &piece[i].box;
  int at[DIMS], wrong = 0, d;
  if (piece[i].empty)
    return 0;
  memcpy(at, box->lo, sizeof at);
  do {
    int offset = 0;
    for (d = 0; d < t.dims; d++)
      offset += (at[d] - box->lo[d]) * piece[i].stride[d];
    double value = tensor[i][place(i, at[0], at[1], at + 2)], is;
    float single = (float)value;
    char *element = host + (size_t)offset * (t.twice ? 8 : 4);
    if (writes)
      memcpy(element, t.twice ? (void *)&value : &single, t.twice ? 8 : 4);
    else if (t.twice)
      memcpy(&is, element, 8);
    else {
      memcpy(&single, element, 4);
      is = (double)single;
    }
    if (!writes)
      wrong +=
          !(fabs(is - value) <= (t.twice ? 1e-12 : 2e-5) * (8 + fabs(value)));
    for (d = t.dims - 1; d >= 0 && ++at[d] == box->hi[d]; d--)
      at[d] = box->lo[d];
  } while (d >= 0);
  return wrong;
}

// ---- what a rank must receive ----------------------------------------------

// The box from the first to the last key that the rank's queries see.
static box_t need_of(int which, int rank) {
  box_t q = piece_of(Q, rank), need = q;
  int keys[KEYS];
  need.hi[1] = channels_of(which);
  for (int d = 0; d < t.dims - 2; d++) {
    int lo = t.whole[2 + d], hi = 0;
    for (int i = q.lo[2 + d]; i < q.hi[2 + d]; i++) {
      int count = window(d, i, keys);
      lo = keys[0] < lo ? keys[0] : lo;
      hi = keys[count - 1] >= hi ? keys[count - 1] + 1 : hi;
    }
    need.lo[2 + d] = lo;
    need.hi[2 + d] = hi;
  }
  if (count_of(&q) == 0)
    memset(&need, 0, sizeof need);
  return need;
}

static long both(box_t a, box_t b) {
  for (int d = 0; d < t.dims; d++) {
    a.lo[d] = a.lo[d] > b.lo[d] ? a.lo[d] : b.lo[d];
    a.hi[d] = a.hi[d] < b.hi[d] ? a.hi[d] : b.hi[d];
  }
  return count_of(&a);
}

static bool shares_copy(int rank) {
  int mine[AXES], theirs[AXES];
  coords(g.me, mine);
  coords(rank, theirs);
  for (int a = 0; a < g.axes; a++)
    if (t.dim_of[a] < 0 && mine[a] != theirs[a])
      return false;
  return true;
}

static long bytes_due(bool backward) {
  long elements = 0;
  for (int i = K; i <= V; i++) {
    box_t need = need_of(i, g.me);
    elements += count_of(&need) - both(need, piece_of(i, g.me));
    for (int r = 0; backward && r < g.ranks; r++)
      if (r != g.me && shares_copy(r))
        elements += both(need_of(i, r), piece_of(i, g.me));
  }
  return elements * (t.twice ? 8 : 4);
}

// Bytes of halos in the last plan of this rank's record.
static long bytes_recorded(void) {
  static char line[1 << 20];
  char path[512];
  long bytes = -1;
  snprintf(path, sizeof path, "%s/rank-%d", getenv("SUNDOG_RECORD"), g.me);
  FILE *file = fopen(path, "r");
  while (file && fgets(line, sizeof line, file)) {
    const char *at = strstr(line, "\"halo_bytes\":");
    if (at)
      bytes = atol(at + strlen("\"halo_bytes\":"));
  }
  if (file)
    fclose(file);
  return bytes;
}

static void bytes_check(int trial, bool backward) {
  if (!getenv("SUNDOG_RECORD"))
    return;
  long due = bytes_due(backward), got = bytes_recorded();
  if (due != got) {
    fprintf(stderr,
            "neighborhood_program: trial %d, '%s': %ld bytes, not %ld\n", trial,
            t.label, got, due);
    exit(1);
  }
}

// ---- a trial ---------------------------------------------------------------

static __typeof__(&sundog_neighborhood_attention) forward;
static __typeof__(&sundog_neighborhood_attention_backward) backward;
static __typeof__(&sundog_tag) tag;

static void results_check(int trial, const int *result, int count, bool again) {
  static char host[ROOM * 8], before[TENSORS][ROOM * 8];
  for (int r = 0; r < count; r++) {
    int i = result[r];
    CHECK(cudaMemcpy(host, piece[i].data, sizeof host, cudaMemcpyDeviceToHost));
    int wrong = piece_walk(i, host, false);
    bool other = again && memcmp(host, before[i], sizeof host) != 0;
    memcpy(before[i], host, sizeof host);
    if (!wrong && !other)
      continue;
    fprintf(
        stderr,
        "neighborhood_program: trial %d, '%s': %d of %s wrong%s; grid %d,%d,%d "
        "kernel %d,%d,%d dilation %d,%d,%d causal %d,%d,%d cut %d\n",
        trial, t.label, wrong, names[i], other ? ", another again" : "",
        t.whole[2], t.whole[3], t.whole[4], t.how.kernel[0], t.how.kernel[1],
        t.how.kernel[2], t.how.dilation[0], t.how.dilation[1],
        t.how.dilation[2], t.how.causal[0], t.how.causal[1], t.how.causal[2],
        t.how.cut);
    exit(1);
  }
}

#define PIECE(i) piece[i].descriptor, piece[i].empty ? NULL : piece[i].data

int main(int count, char **arguments) {
  static char host[ROOM * 8];
  static const int outputs[] = {O}, gradients[] = {DQ, DK, DV};
  forward =
      (__typeof__(forward))dlsym(RTLD_DEFAULT, "sundog_neighborhood_attention");
  backward = (__typeof__(backward))dlsym(
      RTLD_DEFAULT, "sundog_neighborhood_attention_backward");
  tag = (__typeof__(tag))dlsym(RTLD_DEFAULT, "sundog_tag");
  if (count != 5 || !forward || !backward || !tag)
    return 2;
  mesh_read(arguments[2]);
  g.me = atoi(arguments[1]);
  g.state = strtoull(arguments[3], NULL, 10) * 2 + 1;
  cudnnHandle_t handle;
  CHECK(cudnnCreate(&handle));
  for (int i = 0; i < TENSORS; i++) {
    CHECK(cudnnCreateTensorDescriptor(&piece[i].descriptor));
    CHECK(cudaMalloc(&piece[i].data, sizeof host));
  }
  for (int trial = 0; trial < atoi(arguments[4]); trial++) {
    trial_draw();
    whole_compute();
    for (int i = 0; i < TENSORS; i++) {
      piece_describe(i);
      memset(host, 0xff, sizeof host);
      if (i <= V || i == DO)
        piece_walk(i, host, true);
      CHECK(
          cudaMemcpy(piece[i].data, host, sizeof host, cudaMemcpyHostToDevice));
    }
    CHECK(tag(piece[Q].descriptor, t.label));
    for (int again = 0; again < 2; again++) {
      CHECK(forward(handle, &t.how, PIECE(Q), PIECE(K), PIECE(V), PIECE(O)));
      bytes_check(trial, false);
      results_check(trial, outputs, 1, again);
    }
    for (int again = 0; again < 2; again++) {
      CHECK(backward(handle, &t.how, PIECE(Q), PIECE(K), PIECE(V), PIECE(DO),
                     PIECE(DQ), PIECE(DK), PIECE(DV)));
      bytes_check(trial, true);
      results_check(trial, gradients, 3, again);
    }
  }
  return 0;
}
