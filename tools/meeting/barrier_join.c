// SPDX-License-Identifier: Apache-2.0
// The other ranks' side of the barrier.
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/stopwatch.h"
#include "tools/meeting/barrier.h"
#include "tools/meeting/note.h"

// A later address is tried this long after the one before it, and again this
// long after it has failed; less if the time limit leaves less for each.
static const double most_head_start_s = 0.3;
enum {
  WARNING_SECONDS = 30,
  // Rank 0's time limit began later; its message names the missing ranks.
  EXTRA_SECONDS = 10,
  // How long a listener may be silent; it may be the program of rank 0's
  // meeting before this one.
  SILENT_SECONDS = 5,
};

typedef struct attempt {
  int fd;
  double next_s;  // when to try
  double since_s; // when it began
  double head_start_s;
  note_greeting_t greeting;
  size_t got;
} attempt_t;

static void attempt_end(attempt_t *attempt, double now_s) {
  if (attempt->fd >= 0)
    close(attempt->fd);
  *attempt = (attempt_t){.fd = -1,
                         .next_s = now_s + attempt->head_start_s,
                         .head_start_s = attempt->head_start_s};
}

static bool proof_holds(const sdg_secret_t *secret, const char *role,
                        const unsigned char *own, const unsigned char *others,
                        const void *said, size_t bytes,
                        const unsigned char *given) {
  unsigned char proof[SDG_SHA256_BYTES], differs = 0;
  sdg_secret_prove(secret, role, own, others, said, bytes, proof);
  for (size_t i = 0; i < sizeof proof; i++)
    differs |= proof[i] ^ given[i];
  return !differs;
}

// Returns true when rank 0 itself has answered.
static bool attempt_receive(attempt_t *attempt, const sdg_secret_t *secret,
                            double now_s) {
  static const unsigned char none[SDG_NONCE_BYTES];
  note_greeting_t *greeting = &attempt->greeting;
  ssize_t n = recv(attempt->fd, (char *)greeting + attempt->got,
                   sizeof *greeting - attempt->got, MSG_DONTWAIT);
  if (n < 0 && (errno == EINTR || errno == EAGAIN))
    return false;
  if (n <= 0) {
    attempt_end(attempt, now_s);
    return false;
  }
  attempt->got += (size_t)n;
  if (attempt->got < sizeof *greeting)
    return false;
  if (memcmp(greeting->magic, NOTE_MAGIC, sizeof greeting->magic) == 0 &&
      proof_holds(secret, NOTE_GREETING, greeting->nonce, none, NULL, 0,
                  greeting->proof))
    return true;
  attempt_end(attempt, now_s); // another program listens there
  return false;
}

typedef struct journey {
  const barrier_place_t *place;
  const sdg_secret_t *secret;
  double timeout_s;
  sdg_stopwatch_t watch;
  attempt_t attempt[BARRIER_ADDRESSES];
  bool warned;
} journey_t;

static void journey_text(const journey_t *journey, char *out, size_t bytes) {
  char at[64];
  size_t used = 0;
  for (int i = 0; i < journey->place->count && used < bytes; i++)
    used += (size_t)snprintf(
        out + used, bytes - used, "%s%s", used ? ", " : "",
        sdg_address_text(&journey->place->address[i], at, sizeof at));
}

static void journey_warn(journey_t *journey, double now_s) {
  double warn_s = journey->timeout_s / 2 < WARNING_SECONDS
                      ? journey->timeout_s / 2
                      : WARNING_SECONDS;
  char text[512] = "";
  if (journey->warned || now_s < warn_s)
    return;
  journey->warned = true;
  journey_text(journey, text, sizeof text);
  sdg_log("has waited %.3g s for rank 0 at %s", now_s, text);
}

// Tries all addresses until rank 0 answers at one.
static sdg_status_t rank0_reach(journey_t *journey, int *out_reached) {
  int count = journey->place->count;
  char text[512] = "";
  for (;;) {
    struct pollfd polls[BARRIER_ADDRESSES];
    double now_s = sdg_stopwatch_read(&journey->watch);
    if (now_s >= journey->timeout_s) {
      journey_text(journey, text, sizeof text);
      return sdg_fail(SDG_E_JOIN_TIMEOUT,
                      "rank 0 could not be reached at %s within %g s", text,
                      journey->timeout_s);
    }
    journey_warn(journey, now_s);
    for (int i = 0; i < count; i++) {
      attempt_t *attempt = &journey->attempt[i];
      if (attempt->fd >= 0 && now_s - attempt->since_s > SILENT_SECONDS)
        attempt_end(attempt, now_s);
      if (attempt->fd < 0 && now_s >= attempt->next_s) {
        attempt->since_s = now_s;
        attempt->fd = sdg_address_connect(&journey->place->address[i]);
        if (attempt->fd < 0)
          attempt_end(attempt, now_s);
      }
      polls[i] = (struct pollfd){.fd = attempt->fd, .events = POLLIN};
    }
    if (poll(polls, (nfds_t)count, 20) <= 0)
      continue;
    for (int i = 0; i < count; i++)
      if (polls[i].revents &&
          attempt_receive(&journey->attempt[i], journey->secret, now_s)) {
        *out_reached = i;
        return SDG_OK;
      }
  }
}

static sdg_status_t release_receive(journey_t *journey, int fd,
                                    const note_greeting_t *greeting,
                                    const note_arrival_t *arrival,
                                    double limit_s, int *out_place) {
  note_release_t release;
  size_t got = 0;
  while (got < sizeof release) {
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    double now_s = sdg_stopwatch_read(&journey->watch);
    if (now_s >= limit_s)
      return sdg_fail(SDG_E_JOIN_TIMEOUT, "rank 0 did not answer within %g s",
                      limit_s);
    journey_warn(journey, now_s);
    if (poll(&polled, 1, 50) <= 0)
      continue;
    ssize_t n =
        recv(fd, (char *)&release + got, sizeof release - got, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (n <= 0)
      return sdg_fail(SDG_E_PEER_LOST,
                      "rank 0 ended while the ranks were waiting for each "
                      "other to start");
    got += (size_t)n;
  }
  if (!proof_holds(journey->secret, NOTE_RELEASE, greeting->nonce,
                   arrival->nonce, &release, offsetof(note_release_t, proof),
                   release.proof))
    return sdg_fail(SDG_E_SECRET, "rank 0's answer has a wrong proof");
  release.text[sizeof release.text - 1] = '\0';
  *out_place = (int)release.place;
  return release.status == SDG_OK
             ? SDG_OK
             : sdg_fail((sdg_status_t)release.status, "%s", release.text);
}

// A connection from an address to itself stays on the machine.
static bool connection_is_local(int fd) {
  sdg_address_t own, other;
  char first[64], second[64];
  socklen_t own_bytes = sizeof own, other_bytes = sizeof other;
  memset(&own, 0, sizeof own);
  memset(&other, 0, sizeof other);
  if (getsockname(fd, &own.any, &own_bytes) != 0 ||
      getpeername(fd, &other.any, &other_bytes) != 0)
    return false;
  sdg_address_set_port(&own, 0);
  sdg_address_set_port(&other, 0);
  return strcmp(sdg_address_text(&own, first, sizeof first),
                sdg_address_text(&other, second, sizeof second)) == 0;
}

sdg_status_t barrier_join(const barrier_place_t *place,
                          const sdg_secret_t *secret, int rank,
                          double timeout_s, int *out_reached) {
  journey_t journey = {.place = place,
                       .secret = secret,
                       .timeout_s = timeout_s,
                       .watch = sdg_stopwatch_start()};
  double head_start_s = timeout_s / (4 * place->count);
  if (head_start_s > most_head_start_s)
    head_start_s = most_head_start_s;
  for (int i = 0; i < place->count; i++)
    journey.attempt[i] = (attempt_t){
        .fd = -1, .next_s = i * head_start_s, .head_start_s = head_start_s};
  note_arrival_t arrival = {.rank = (uint32_t)rank};
  SDG_TRY(sdg_secret_random(arrival.nonce, sizeof arrival.nonce));
  int reached = 0, common = 0;
  sdg_status_t status = rank0_reach(&journey, &reached);
  attempt_t *first = &journey.attempt[reached];
  for (int i = 0; i < place->count; i++)
    if (i != reached || status != SDG_OK)
      attempt_end(&journey.attempt[i], 0);
  if (status != SDG_OK)
    return status;
  arrival.reached = (uint32_t)reached;
  arrival.local = connection_is_local(first->fd);
  sdg_secret_prove(secret, NOTE_ARRIVAL, arrival.nonce, first->greeting.nonce,
                   &arrival.rank, 3 * sizeof arrival.rank, arrival.proof);
  // An empty socket buffer takes it at once; a failure shows in the answer.
  (void)!send(first->fd, &arrival, sizeof arrival, MSG_NOSIGNAL);
  status = release_receive(&journey, first->fd, &first->greeting, &arrival,
                           timeout_s + EXTRA_SECONDS, &common);
  close(first->fd);
  *out_reached = arrival.local && common < place->count ? common : reached;
  return status;
}
