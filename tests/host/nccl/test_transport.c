/* SPDX-License-Identifier: Apache-2.0 */
/* The transport below the NCCL API, with threads as ranks on one mapping: what
 * a thread sanitizer can see of rings, doorbells and reductions. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/host/nccl/collective.h"
#include "src/host/nccl/reduce.h"
#include "tests/unit/harness.h"

enum { RANKS = 4 };

typedef struct team team_t;
typedef struct member {
  team_t *team;
  host_endpoint_t endpoint;
  ncclResult_t result;
  pthread_t thread;
} member_t;
struct team {
  host_endpoint_t whole;
  member_t member[HOST_RANKS_MAX];
  ncclResult_t (*play)(host_endpoint_t *endpoint);
};

static void *member_main(void *argument) {
  member_t *member = argument;
  member->result = member->team->play(&member->endpoint);
  return NULL;
}

/* Runs `play` on every rank at once and returns the results in the team. */
static team_t *team_start(int ranks, ncclResult_t (*play)(host_endpoint_t *)) {
  team_t *team = calloc(1, sizeof *team);
  int fd = host_segment_create(ranks);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(host_endpoint_open(&team->whole, fd, 0, ranks), 0);
  team->play = play;
  for (int r = 0; r < ranks; r++) {
    member_t *member = &team->member[r];
    member->team = team;
    ck_assert_int_eq(host_endpoint_share(&member->endpoint, &team->whole, r),
                     0);
  }
  for (int r = 0; r < ranks; r++)
    pthread_create(&team->member[r].thread, NULL, member_main,
                   &team->member[r]);
  return team;
}

static void team_join(team_t *team) {
  for (int r = 0; r < team->whole.ranks; r++)
    pthread_join(team->member[r].thread, NULL);
}

static void team_free(team_t *team) {
  int fd = team->whole.fd;
  for (int r = 0; r < team->whole.ranks; r++)
    host_endpoint_close(&team->member[r].endpoint);
  host_endpoint_close(&team->whole);
  close(fd);
  free(team);
}

static void team_play(int ranks, ncclResult_t (*play)(host_endpoint_t *)) {
  team_t *team = team_start(ranks, play);
  team_join(team);
  for (int r = 0; r < ranks; r++)
    ck_assert_int_eq(team->member[r].result, ncclSuccess);
  team_free(team);
}

/* Bytes of message `round` from `source` to `destination`, the same for both:
 * 0, small, around the limits of a slot, and several rings long. */
static size_t message_bytes(int round, int source, int destination) {
  unsigned seed = (unsigned)(round * 64 + source * 8 + destination);
  seed = seed * 2654435761u ^ seed >> 3;
  switch (seed >> 8 & 7) {
  case 0:
    return 0;
  case 1:
    return HOST_SLOT_BYTES;
  case 2:
    return HOST_SLOT_BYTES - 1 + seed % 3;
  case 3:
    return HOST_SLOT_BYTES * HOST_SLOTS + seed % 70000;
  case 4:
    return (2u << 20) + seed % 1000;
  default:
    return seed % 5000;
  }
}

static unsigned char message_byte(int round, int source, int destination,
                                  size_t i) {
  return (unsigned char)(i * 31 + i / 251 + (size_t)(round * 7 + source * 3) +
                         (size_t)destination);
}

static ncclResult_t all_to_all(host_endpoint_t *e) {
  for (int round = 0; round < 6; round++) {
    host_op_t ops[2 * HOST_RANKS_MAX];
    unsigned char *buffers[2 * HOST_RANKS_MAX];
    int count = 0;
    for (int p = 0; p < e->ranks; p++) {
      size_t out = message_bytes(round, e->rank, p);
      size_t in = message_bytes(round, p, e->rank);
      unsigned char *send = malloc(out + 1), *recv = malloc(in + 1);
      for (size_t i = 0; i < out; i++)
        send[i] = message_byte(round, e->rank, p, i);
      recv[in] = 0x5a;
      buffers[count] = send;
      ops[count++] = (host_op_t){
          .kind = HOST_OP_SEND, .send = send, .count = out, .root = p};
      buffers[count] = recv;
      ops[count++] = (host_op_t){
          .kind = HOST_OP_RECV, .recv = recv, .count = in, .root = p};
    }
    ncclResult_t result = host_ops_run(e, ops, count);
    if (result != ncclSuccess)
      return result;
    for (int p = 0; p < e->ranks; p++) {
      const unsigned char *recv = buffers[2 * p + 1];
      size_t in = message_bytes(round, p, e->rank);
      for (size_t i = 0; i < in; i++)
        if (recv[i] != message_byte(round, p, e->rank, i))
          return ncclInternalError;
      if (recv[in] != 0x5a)
        return ncclInternalError;
    }
    for (int i = 0; i < count; i++)
      free(buffers[i]);
  }
  return ncclSuccess;
}

START_TEST(all_to_all_of_any_sizes_arrives_complete) {
  static const int ranks[] = {1, 2, 3, 4, 8};
  team_play(ranks[_i], all_to_all);
}
END_TEST

static ncclResult_t sum_all(host_endpoint_t *e) {
  static const size_t counts[] = {1, 3, 2048, 2049, 100000, 300001};
  for (int c = 0; c < 6; c++)
    for (int in_place = 0; in_place < 2; in_place++) {
      size_t n = counts[c];
      float *in = malloc(n * sizeof *in), *out = malloc(n * sizeof *out);
      for (size_t i = 0; i < n; i++)
        in[i] = (float)(i % 1000) + (float)e->rank * 0.3f;
      float *target = in_place ? in : out;
      host_op_t op = {.kind = HOST_OP_ALL_REDUCE,
                      .send = in,
                      .recv = target,
                      .count = n,
                      .type = ncclFloat32,
                      .op = ncclSum};
      ncclResult_t result = host_ops_run(e, &op, 1);
      if (result != ncclSuccess)
        return result;
      for (size_t i = 0; i < n; i++) {
        float sum = (float)(i % 1000);
        for (int r = 1; r < e->ranks; r++)
          sum += (float)(i % 1000) + (float)r * 0.3f;
        if (target[i] != sum)
          return ncclInternalError;
      }
      free(in);
      free(out);
    }
  return ncclSuccess;
}

START_TEST(all_reduce_adds_in_the_order_of_ranks) {
  static const int ranks[] = {1, 2, 3, 4, 8};
  team_play(ranks[_i], sum_all);
}
END_TEST

/* All ranks send first; only a loop that moves all lanes can complete this. */
static ncclResult_t send_before_receive(host_endpoint_t *e) {
  size_t bytes = 3 << 20;
  char *send = calloc(1, bytes), *recv = calloc(1, bytes);
  memset(send, e->rank + 1, bytes);
  int next = (e->rank + 1) % e->ranks;
  int previous = (e->rank + e->ranks - 1) % e->ranks;
  host_op_t ops[] = {
      {.kind = HOST_OP_SEND, .send = send, .count = bytes, .root = next},
      {.kind = HOST_OP_RECV, .recv = recv, .count = bytes, .root = previous}};
  ncclResult_t result = host_ops_run(e, ops, 2);
  if (result == ncclSuccess && recv[bytes - 1] != previous + 1)
    result = ncclInternalError;
  free(send);
  free(recv);
  return result;
}

START_TEST(ring_of_messages_larger_than_the_rings_does_not_lock) {
  team_play(RANKS, send_before_receive);
}
END_TEST

/* Rank 0 sends a byte more than rank 1 expects. */
static ncclResult_t mismatch(host_endpoint_t *e) {
  char buffer[16];
  memset(buffer, 0, sizeof buffer);
  host_op_t ops[] = {
      {.kind = e->rank ? HOST_OP_RECV : HOST_OP_SEND,
       .send = buffer,
       .recv = buffer,
       .count = e->rank ? 8 : 9,
       .root = !e->rank},
      {.kind = HOST_OP_RECV, .recv = buffer, .count = 8, .root = !e->rank}};
  ncclResult_t result = host_ops_run(e, ops, e->rank ? 1 : 2);
  for (int i = 0; e->rank == 1 && i < 8; i++)
    if (buffer[i] != (char)0xff)
      return ncclInternalError;
  return result;
}

START_TEST(sizes_that_differ_are_invalid_usage_on_both_sides) {
  team_t *team = team_start(2, mismatch);
  team_join(team);
  ck_assert_int_eq(team->member[0].result, ncclInvalidUsage);
  ck_assert_int_eq(team->member[1].result, ncclInvalidUsage);
  host_fault_t fault = host_fault_get(&team->whole);
  ck_assert_int_eq(fault.kind, HOST_FAULT_SIZE);
  ck_assert_int_eq(fault.culprit, 0);
  team_free(team);
}
END_TEST

/* Rank 0 gathers, the others reduce. */
static ncclResult_t mixed(host_endpoint_t *e) {
  float in = 1, out[RANKS];
  host_op_t op = {.kind = e->rank ? HOST_OP_ALL_REDUCE : HOST_OP_ALL_GATHER,
                  .send = &in,
                  .recv = out,
                  .count = 1,
                  .type = ncclFloat32};
  return host_ops_run(e, &op, 1);
}

START_TEST(different_collectives_are_invalid_usage_everywhere) {
  team_t *team = team_start(3, mixed);
  team_join(team);
  for (int r = 0; r < 3; r++)
    ck_assert_int_eq(team->member[r].result, ncclInvalidUsage);
  team_free(team);
}
END_TEST

/* Rank 0 has nothing to do; the others wait for it. */
static ncclResult_t wait_for_zero(host_endpoint_t *e) {
  char buffer[64] = {0};
  host_op_t op = {.kind = HOST_OP_RECV, .recv = buffer, .count = sizeof buffer};
  return e->rank == 0 ? ncclSuccess : host_ops_run(e, &op, 1);
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

START_TEST(stop_ends_a_sleeping_wait) {
  team_t *team = team_start(RANKS, wait_for_zero);
  usleep(150000);
  double from = seconds();
  for (int r = 1; r < RANKS; r++)
    host_endpoint_stop(&team->member[r].endpoint);
  team_join(team);
  ck_assert_double_lt(seconds() - from, 1);
  for (int r = 1; r < RANKS; r++)
    ck_assert_int_eq(team->member[r].result, HOST_STOPPED);
  team_free(team);
}
END_TEST

START_TEST(waiting_for_a_rank_that_left_is_a_remote_error) {
  team_t *team = team_start(RANKS, wait_for_zero);
  usleep(20000);
  host_endpoint_t leaver;
  host_endpoint_share(&leaver, &team->whole, 0);
  host_endpoint_close(&leaver);
  team_join(team);
  for (int r = 1; r < RANKS; r++)
    ck_assert_int_eq(team->member[r].result, ncclRemoteError);
  ck_assert_int_eq(host_fault_get(&team->whole).culprit, 0);
  team_free(team);
}
END_TEST

/* Rank 0 sends and leaves; its data must still arrive. */
static ncclResult_t send_and_leave(host_endpoint_t *e) {
  char buffer[64] = {0};
  memset(buffer, e->rank == 0 ? 7 : 0, sizeof buffer);
  host_op_t op = {.kind = e->rank ? HOST_OP_RECV : HOST_OP_SEND,
                  .send = buffer,
                  .recv = buffer,
                  .count = sizeof buffer,
                  .root = !e->rank};
  if (e->rank == 1)
    usleep(50000);
  ncclResult_t result = host_ops_run(e, &op, 1);
  if (e->rank == 0) {
    host_endpoint_t leaver;
    member_t *member = (member_t *)((char *)e - offsetof(member_t, endpoint));
    host_endpoint_share(&leaver, &member->team->whole, 0);
    host_endpoint_close(&leaver);
  }
  return result == ncclSuccess && buffer[63] != 7 ? ncclInternalError : result;
}

START_TEST(messages_sent_before_a_rank_left_arrive) {
  team_play(2, send_and_leave);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("nccl transport");
  TCase *tcase = tcase_create("threads as ranks");
  tcase_set_timeout(tcase, 60);
  tcase_add_loop_test(tcase, all_to_all_of_any_sizes_arrives_complete, 0, 5);
  tcase_add_loop_test(tcase, all_reduce_adds_in_the_order_of_ranks, 0, 5);
  tcase_add_test(tcase, ring_of_messages_larger_than_the_rings_does_not_lock);
  tcase_add_test(tcase, sizes_that_differ_are_invalid_usage_on_both_sides);
  tcase_add_test(tcase, different_collectives_are_invalid_usage_everywhere);
  tcase_add_test(tcase, stop_ends_a_sleeping_wait);
  tcase_add_test(tcase, waiting_for_a_rank_that_left_is_a_remote_error);
  tcase_add_test(tcase, messages_sent_before_a_rank_left_arrive);
  suite_add_tcase(suite, tcase);
  return harness_run(suite);
}
