/* SPDX-License-Identifier: Apache-2.0 */
/* What the forward pass and the gradients of a recurrent network share, in
 * float or double; only files that are compiled for both include this.
 *
 * Inside, sequences are time x batch rows. Rows at times beyond a sequence's
 * end are skipped: the state stays, the gradient is zero. */
#ifndef SDG_SRC_HOST_CUDNN_RECURRENT_PART_H
#define SDG_SRC_HOST_CUDNN_RECURRENT_PART_H

#ifndef HOST_REAL
#define HOST_REAL float /* for checks that compile the header alone */
#endif

#include "src/host/cudnn/base/real.h"
#include "src/host/cudnn/recurrent/network.h"

#define product          REAL(host_product)
#define load             REAL(host_real_load)
#define store            REAL(host_real_store)
#define add_rows         REAL(host_real_add_rows)
#define active           REAL(host_rnn_active)
#define load_rows        REAL(host_rnn_load_rows)
#define store_rows       REAL(host_rnn_store_rows)
#define take             REAL(host_rnn_take)
#define part_of          REAL(host_rnn_part_of)
#define load_state       REAL(host_rnn_load_state)
#define store_state      REAL(host_rnn_store_state)
#define input_of         REAL(host_rnn_input_of)
#define mask_of          REAL(host_rnn_mask_of)
#define clip             REAL(host_rnn_clip)
#define drops            REAL(host_rnn_drops)
#define widest           REAL(host_rnn_widest)
#define backward_data    REAL(host_rnn_backward_data)
#define backward_weights REAL(host_rnn_backward_weights)

typedef struct {
  const host_rnn_job_t *job;
  const host_rnn_net_t *net;
  int64_t rows; /* time * batch */
  real_t *weights, *d_weights, *kept;
  real_t *block; /* all memory that this run allocated */
  size_t used;
} run_t;

/* One direction of one layer. */
typedef struct {
  int pseudo, layer, way;
  int64_t gates, width; /* gates * hidden; of the input */
  host_rnn_place_t place;
  real_t *gate, *state, *out, *delta, *d_out;
} part_t;

/* Whether time t lies inside sequence b. */
bool active(const host_rnn_job_t *job, int64_t t, int64_t b);

/* _load: sequences in memory as dense rows, zeros beyond their ends. _store:
 * the inverse; with `fills`, the layout's padding symbol goes beyond the ends.
 */
void load_rows(const run_t *r, const host_rnn_data_t *d, const void *data,
               real_t *to);
void store_rows(const run_t *r, const host_rnn_data_t *d, void *data,
                bool fills, const real_t *from);

/* `count` elements of the run's memory, valid until `used` is reset. */
real_t *take(run_t *r, int64_t count);

part_t part_of(const run_t *r, int pseudo);

/* _load: a state of the program (hx ...) of one pseudo-layer, or zeros. _store:
 * the inverse. */
void load_state(const run_t *r, const void *data, int pseudo, int64_t width,
                real_t *to);
void store_state(const run_t *r, void *data, int pseudo, int64_t width,
                 const real_t *from);

/* The input of a layer; with dropout, the mask was drawn before. */
void input_of(const run_t *r, int layer, real_t *to);

/* The stored dropout mask of a layer's input. */
real_t *mask_of(const run_t *r, int layer);

bool drops(const run_t *r);

/* The clipped state of a cell; the stored state is not clipped. */
real_t clip(const host_rnn_net_t *net, real_t c);

/* Elements of the widest input. */
int64_t widest(const host_rnn_net_t *net);

/* The two gradients; false when memory is short. */
bool backward_data(run_t *r);
bool backward_weights(run_t *r);

#endif
