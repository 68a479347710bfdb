// SPDX-License-Identifier: Apache-2.0
// Rank 0's side of the barrier, and the addresses of its machine.
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/stopwatch.h"
#include "tools/meeting/barrier.h"
#include "tools/meeting/note.h"

enum {
  STRANGERS = 64,       // connections beyond the ranks'
  STRANGER_SECONDS = 5, // how long one may say nothing
  WARNING_SECONDS = 30,
};

// `running`: whether its wire is connected.
static bool address_takes(const struct ifaddrs *one, int family, bool running) {
  const struct sockaddr_in6 *six = (const void *)one->ifa_addr;
  return one->ifa_addr && one->ifa_addr->sa_family == family &&
         (one->ifa_flags & IFF_UP) && !(one->ifa_flags & IFF_LOOPBACK) &&
         !(one->ifa_flags & IFF_RUNNING) == !running &&
         (family == AF_INET || !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr));
}

static void addresses_take(const struct ifaddrs *all, int family, bool running,
                           uint16_t port, barrier_place_t *place) {
  for (const struct ifaddrs *one = all; one; one = one->ifa_next) {
    if (!address_takes(one, family, running) ||
        place->count == BARRIER_ADDRESSES)
      continue;
    sdg_address_t *to = &place->address[place->count++];
    memcpy(to, one->ifa_addr,
           family == AF_INET ? sizeof to->v4 : sizeof to->v6);
    sdg_address_set_port(to, port);
  }
}

void barrier_place_find(uint16_t port, barrier_place_t *out_place) {
  struct ifaddrs *all = NULL;
  memset(out_place, 0, sizeof *out_place);
  if (getifaddrs(&all) != 0)
    all = NULL;
  for (int idle = 0; idle < 2; idle++) {
    addresses_take(all, AF_INET, !idle, port, out_place);
    addresses_take(all, AF_INET6, !idle, port, out_place);
  }
  freeifaddrs(all);
  if (out_place->count > 0)
    return;
  out_place->count = 1;
  out_place->address[0].v4 = (struct sockaddr_in){
      .sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  sdg_address_set_port(&out_place->address[0], port);
}

typedef struct guest {
  int fd;
  nfds_t poll; // its place in the list that is polled
  double since_s;
  unsigned char nonce[SDG_NONCE_BYTES]; // rank 0's
  note_arrival_t arrival;
  size_t got;
  bool known;
} guest_t;

typedef struct barrier {
  const sdg_secret_t *secret;
  int size, guests, known;
  guest_t *guest;
  bool *here;  // per rank
  int reached; // by the other machines; -1: none has come
  bool same, warned;
  double timeout_s;
  sdg_stopwatch_t watch;
} barrier_t;

static void guest_drop(barrier_t *barrier, guest_t *guest) {
  close(guest->fd);
  if (guest->known) {
    barrier->here[guest->arrival.rank] = false;
    barrier->known--;
  }
  *guest = (guest_t){.fd = -1};
}

static void guest_greet(barrier_t *barrier, guest_t *guest) {
  static const unsigned char none[SDG_NONCE_BYTES];
  note_greeting_t greeting = {.magic = {0}};
  memcpy(greeting.magic, NOTE_MAGIC, sizeof greeting.magic);
  memcpy(greeting.nonce, guest->nonce, sizeof guest->nonce);
  sdg_secret_prove(barrier->secret, NOTE_GREETING, guest->nonce, none, NULL, 0,
                   greeting.proof);
  // An empty socket buffer takes it at once.
  if (send(guest->fd, &greeting, sizeof greeting, MSG_NOSIGNAL) !=
      sizeof greeting)
    guest_drop(barrier, guest);
}

static sdg_status_t guests_accept(barrier_t *barrier, int listener,
                                  double now_s) {
  int fd;
  while ((fd = sdg_fd_raise(accept4(listener, NULL, NULL,
                                    SOCK_CLOEXEC | SOCK_NONBLOCK))) >= 0) {
    int i = 0;
    while (i < barrier->guests && barrier->guest[i].fd >= 0)
      i++;
    guest_t *guest = &barrier->guest[i];
    if (i == barrier->guests) {
      close(fd); // a rank tries again
      continue;
    }
    *guest = (guest_t){.fd = fd, .since_s = now_s};
    if (sdg_secret_random(guest->nonce, sizeof guest->nonce) != SDG_OK)
      guest_drop(barrier, guest);
    else
      guest_greet(barrier, guest);
  }
  return errno == EMFILE
             ? sdg_fail(SDG_E_RENDEZVOUS,
                        "rank 0 may not open the descriptors that %d ranks "
                        "take (ulimit -n)",
                        barrier->size)
             : SDG_OK;
}

static void guest_judge(barrier_t *barrier, guest_t *guest) {
  unsigned char proof[SDG_SHA256_BYTES], differs = 0;
  const note_arrival_t *arrival = &guest->arrival;
  sdg_secret_prove(barrier->secret, NOTE_ARRIVAL, arrival->nonce, guest->nonce,
                   &arrival->rank, 3 * sizeof arrival->rank, proof);
  for (size_t i = 0; i < sizeof proof; i++)
    differs |= proof[i] ^ arrival->proof[i];
  if (differs || arrival->rank == 0 ||
      arrival->rank >= (uint32_t)barrier->size ||
      barrier->here[arrival->rank]) {
    guest_drop(barrier, guest);
    return;
  }
  guest->known = true;
  barrier->here[arrival->rank] = true;
  barrier->known++;
  if (arrival->local || arrival->reached >= BARRIER_ADDRESSES)
    return;
  if (barrier->reached < 0)
    barrier->reached = (int)arrival->reached;
  barrier->same = barrier->same && (int)arrival->reached == barrier->reached;
}

static void guest_receive(barrier_t *barrier, guest_t *guest) {
  char more;
  ssize_t n = guest->known
                  ? recv(guest->fd, &more, 1, MSG_DONTWAIT)
                  : recv(guest->fd, (char *)&guest->arrival + guest->got,
                         sizeof guest->arrival - guest->got, MSG_DONTWAIT);
  if (n < 0 && (errno == EINTR || errno == EAGAIN))
    return;
  if (n <= 0) {
    guest_drop(barrier, guest); // if it was a rank, it is missing now
    return;
  }
  if (guest->known)
    return;
  guest->got += (size_t)n;
  if (guest->got == sizeof guest->arrival)
    guest_judge(barrier, guest);
}

static void missing_list(const barrier_t *barrier, char *out, size_t bytes) {
  size_t used = 0;
  for (int r = 1; r < barrier->size; r++) {
    if (barrier->here[r])
      continue;
    if (used > bytes - 40) {
      snprintf(out + used, bytes - used, " ...");
      return;
    }
    used +=
        (size_t)snprintf(out + used, bytes - used, "%s%d", used ? ", " : "", r);
  }
}

static void guests_release(const barrier_t *barrier, sdg_status_t status,
                           const char *text) {
  for (int i = 0; i < barrier->guests; i++) {
    const guest_t *guest = &barrier->guest[i];
    if (guest->fd < 0 || !guest->known)
      continue;
    note_release_t release = {
        .status = status,
        .place = barrier->reached < 0 ? 0 : (uint32_t)barrier->reached};
    snprintf(release.text, sizeof release.text, "%s", text);
    sdg_secret_prove(barrier->secret, NOTE_RELEASE, guest->nonce,
                     guest->arrival.nonce, &release,
                     offsetof(note_release_t, proof), release.proof);
    (void)!send(guest->fd, &release, sizeof release, MSG_NOSIGNAL);
  }
}

// Asks for those in use alone: poll() refuses more than `ulimit -n`.
static void guests_poll(const barrier_t *barrier, int listener,
                        struct pollfd *polls) {
  nfds_t used = 0;
  polls[used++] = (struct pollfd){.fd = listener, .events = POLLIN};
  for (int i = 0; i < barrier->guests; i++)
    if (barrier->guest[i].fd >= 0) {
      barrier->guest[i].poll = used;
      polls[used++] =
          (struct pollfd){.fd = barrier->guest[i].fd, .events = POLLIN};
    }
  if (poll(polls, used, 50) < 0)
    for (nfds_t i = 0; i < used; i++)
      polls[i].revents = 0;
}

static sdg_status_t guests_serve(barrier_t *barrier, int listener,
                                 struct pollfd *polls) {
  char missing[160], text[240];
  while (barrier->known < barrier->size - 1) {
    double now_s = sdg_stopwatch_read(&barrier->watch);
    double warn_s = barrier->timeout_s / 2 < WARNING_SECONDS
                        ? barrier->timeout_s / 2
                        : WARNING_SECONDS;
    if (now_s >= barrier->timeout_s) {
      missing_list(barrier, missing, sizeof missing);
      snprintf(text, sizeof text,
               "these ranks of %d could not reach rank 0 within %g s: %s",
               barrier->size, barrier->timeout_s, missing);
      guests_release(barrier, SDG_E_JOIN_TIMEOUT, text);
      return sdg_fail(SDG_E_JOIN_TIMEOUT, "%s", text);
    }
    if (now_s >= warn_s && !barrier->warned) {
      barrier->warned = true;
      missing_list(barrier, missing, sizeof missing);
      sdg_log("has waited %.3g s for these ranks to reach rank 0: %s", now_s,
              missing);
    }
    guests_poll(barrier, listener, polls);
    for (int i = 0; i < barrier->guests; i++) {
      guest_t *guest = &barrier->guest[i];
      if (guest->fd >= 0 && polls[guest->poll].revents)
        guest_receive(barrier, guest);
      if (guest->fd >= 0 && !guest->known &&
          now_s - guest->since_s > STRANGER_SECONDS)
        guest_drop(barrier, guest);
    }
    if (polls[0].revents)
      SDG_TRY(guests_accept(barrier, listener, now_s));
  }
  guests_release(barrier, SDG_OK, "");
  return SDG_OK;
}

sdg_status_t barrier_serve(int listener, const sdg_secret_t *secret, int size,
                           double timeout_s, int *out_reached, bool *out_same) {
  barrier_t barrier = {.secret = secret,
                       .size = size,
                       .guests = size + STRANGERS,
                       .reached = -1,
                       .same = true,
                       .timeout_s = timeout_s,
                       .watch = sdg_stopwatch_start()};
  struct pollfd *polls = calloc((size_t)barrier.guests + 1, sizeof *polls);
  barrier.guest = calloc((size_t)barrier.guests, sizeof *barrier.guest);
  barrier.here = calloc((size_t)size, sizeof *barrier.here);
  sdg_status_t status = SDG_OK;
  if (!polls || !barrier.guest || !barrier.here) {
    status = sdg_fail(SDG_E_NO_MEMORY, "%d connections", barrier.guests);
    goto done;
  }
  for (int i = 0; i < barrier.guests; i++)
    barrier.guest[i].fd = -1;
  status = guests_serve(&barrier, listener, polls);
  for (int i = 0; i < barrier.guests; i++)
    if (barrier.guest[i].fd >= 0)
      close(barrier.guest[i].fd);
  *out_reached = barrier.reached < 0 ? 0 : barrier.reached;
  *out_same = barrier.same;
done:
  free(polls);
  free(barrier.guest);
  free(barrier.here);
  return status;
}
