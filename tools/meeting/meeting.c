// SPDX-License-Identifier: Apache-2.0
// Chooses the way to meet, and meets by PMIx or PMI.
#include "tools/meeting/meeting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/options.h"
#include "src/bootstrap/launcher.h"
#include "src/bootstrap/rendezvous.h"
#include "tools/meeting/barrier.h"
#include "tools/meeting/client.h"
#include "tools/meeting/pmi.h"
#include "tools/program/setting.h"

enum { SECRET_RANDOM_BYTES = 32, PLACE_BYTES = 128 };

bool meeting_size_is_hidden(void) {
  return sdg_launcher_has_pmix() && sdg_launcher_lacks_size();
}

sdg_status_t meeting_way_find(meeting_way_t *out_way) {
  int rank, size, local_rank;
  const char *origin, *name;
  const char *given = sdg_options_get()->rendezvous;
  *out_way = *given ? MEETING_GIVEN : MEETING_PMIX;
  if (meeting_size_is_hidden())
    return SDG_OK;
  SDG_TRY(sdg_rank_detect(&rank, &size, &local_rank, &origin));
  if (size < 2)
    *out_way = MEETING_ALONE;
  else if (*given)
    *out_way = MEETING_GIVEN;
  else if (sdg_launcher_spread(size, &name) == SDG_SPREAD_ONE)
    *out_way = MEETING_FOLDER;
  else if (!sdg_launcher_has_pmix() && name && sdg_launcher_pmi() >= 0)
    *out_way = MEETING_PMI;
  else if (!sdg_launcher_has_pmix()) {
    // Where nothing tells on how many machines the ranks are, they are on one.
    *out_way = MEETING_FOLDER;
    return sdg_rendezvous_check(given, size);
  }
  return SDG_OK;
}

static sdg_status_t variable_set(const char *name, const char *value) {
  return setting_make(name, value, SDG_ORIGIN_COMMAND);
}

// ---- what rank 0 publishes: "sundog1 PORT SECRET ADDRESS..." ----------------

typedef struct invitation {
  unsigned port;
  char secret[2 * SECRET_RANDOM_BYTES + 1];
  barrier_place_t place;
} invitation_t;

static sdg_status_t invitation_write(invitation_t *invitation, char *out,
                                     size_t bytes) {
  unsigned char random[SECRET_RANDOM_BYTES];
  char at[64];
  SDG_TRY(sdg_secret_random(random, sizeof random));
  for (size_t i = 0; i < sizeof random; i++)
    snprintf(invitation->secret + 2 * i, 3, "%02x", random[i]);
  barrier_place_find((uint16_t)invitation->port, &invitation->place);
  size_t used = (size_t)snprintf(out, bytes, "sundog1 %u %s", invitation->port,
                                 invitation->secret);
  for (int i = 0; i < invitation->place.count; i++) {
    sdg_address_text(&invitation->place.address[i], at, sizeof at);
    if (used + strlen(at) + 2 > bytes) {
      invitation->place.count = i;
      break;
    }
    used += (size_t)snprintf(out + used, bytes - used, " %s", at);
  }
  return SDG_OK;
}

static sdg_status_t invitation_read(char *text, invitation_t *out) {
  char place[PLACE_BYTES], *word, *rest = NULL;
  sdg_meeting_point_t point;
  memset(out, 0, sizeof *out);
  word = strtok_r(text, " ", &rest);
  if (!word || strcmp(word, "sundog1") != 0)
    return sdg_fail(SDG_E_PMIX, "rank 0 runs another version of sundog");
  word = strtok_r(NULL, " ", &rest);
  out->port = word ? (unsigned)strtoul(word, NULL, 10) : 0;
  word = strtok_r(NULL, " ", &rest);
  snprintf(out->secret, sizeof out->secret, "%s", word ? word : "");
  while ((word = strtok_r(NULL, " ", &rest)) &&
         out->place.count < BARRIER_ADDRESSES) {
    snprintf(place, sizeof place, "tcp://%s", word);
    SDG_TRY(sdg_address_find(place, &point));
    out->place.address[out->place.count++] = point.address[0];
  }
  return out->place.count > 0
             ? SDG_OK
             : sdg_fail(SDG_E_PMIX, "rank 0 has published no address");
}

// ---- a rank's earlier meeting ----------------------------------------------
// A second wait of the same ranks can end early, because the server counts
// clients that have left. So a later `sundog exec` of a rank asks this file,
// which the launcher removes with its own at the end of the job.

static bool note_path(char *out, size_t bytes) {
  struct stat found;
  const char *folder = getenv("PMIX_SERVER_TMPDIR");
  const char *space = sdg_launcher_value("PMIX_NAMESPACE");
  const char *rank = sdg_launcher_value("PMIX_RANK");
  if (!folder || *folder != '/' || !space || strchr(space, '/') || !rank ||
      strchr(rank, '/') || lstat(folder, &found) != 0 ||
      !S_ISDIR(found.st_mode) || found.st_uid != geteuid() ||
      (found.st_mode & 022))
    return false;
  int n = snprintf(out, bytes, "%s/sundog-%s-%s", folder, space, rank);
  return n > 0 && (size_t)n < bytes;
}

// Reads "RANK SIZE LOCAL_RANK LOCAL_SIZE MACHINES" and the invitation.
static bool note_read(client_t *out_client) {
  char path[PATH_MAX], text[CLIENT_TEXT_BYTES + 64];
  int start = 0;
  *out_client = (client_t){.rank = -1};
  if (!note_path(path, sizeof path) ||
      !sdg_fd_text(path, O_NOFOLLOW, text, sizeof text) ||
      sscanf(text, "%d %d %d %d %d %n", &out_client->rank, &out_client->size,
             &out_client->local_rank, &out_client->local_size,
             &out_client->machines, &start) != 5)
    return false;
  snprintf(out_client->text, sizeof out_client->text, "%s", text + start);
  return true;
}

static void note_write(const client_t *client) {
  char path[PATH_MAX];
  if (!note_path(path, sizeof path))
    return;
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0)
    return;
  int n = dprintf(fd, "%d %d %d %d %d %s", client->rank, client->size,
                  client->local_rank, client->local_size, client->machines,
                  client->text);
  // Half of it would mislead.
  if (n < (int)strlen(client->text) || close(fd) != 0)
    (void)unlink(path);
}

// ---- the meeting ------------------------------------------------------------

// Port 0: a free one.
static sdg_status_t port_open(uint16_t port, uint16_t *out_port, int *out_kept,
                              int *out_listener) {
  *out_listener = -1;
  *out_kept = sdg_address_reserve(port, out_port);
  if (*out_kept >= 0)
    *out_listener = sdg_address_listen_any(*out_port, out_port);
  return *out_listener >= 0
             ? SDG_OK
             : sdg_fail(SDG_E_RENDEZVOUS, "rank 0 cannot listen at port %u: %s",
                        port, strerror(errno));
}

// Compares what PMIx says with the launcher's variables.
static sdg_status_t client_check(const client_t *client) {
  int rank, size, local_rank;
  const char *origin;
  if (meeting_size_is_hidden())
    return SDG_OK;
  SDG_TRY(sdg_rank_detect(&rank, &size, &local_rank, &origin));
  return client->rank == rank && client->size == size
             ? SDG_OK
             : sdg_fail(SDG_E_RANK_UNKNOWN,
                        "%s says rank %d of %d, PMIx says rank %d of %d",
                        origin, rank, size, client->rank, client->size);
}

static sdg_status_t place_set(const client_t *client,
                              const invitation_t *invitation, int reached,
                              bool same) {
  char place[PATH_MAX], at[64];
  if (*sdg_options_get()->rendezvous)
    return SDG_OK;
  if (client->machines == 1 || client->local_size == client->size) {
    SDG_TRY(sdg_rendezvous_default(place, sizeof place));
    return variable_set("SUNDOG_RENDEZVOUS", place);
  }
  // Machines that reach rank 0 by different networks need it to listen on all.
  if (same)
    snprintf(
        place, sizeof place, "tcp://%s",
        sdg_address_text(&invitation->place.address[reached], at, sizeof at));
  else
    snprintf(place, sizeof place, "tcp://%s:%u",
             access("/proc/net/if_inet6", F_OK) == 0 ? "[::]" : "0.0.0.0",
             invitation->port);
  SDG_TRY(variable_set("SUNDOG_SECRET", invitation->secret));
  return variable_set("SUNDOG_RENDEZVOUS", place);
}

// Publishes `text` if it is not empty, and reads what rank 0 published.
static sdg_status_t invitation_carry(int pmi, const char *helper,
                                     const char *text, client_t *out_client) {
  const double timeout_s = sdg_options_get()->timeout_s;
  const char *origin;
  if (pmi < 0) {
    SDG_TRY(client_meet(helper, text, timeout_s, out_client));
    note_write(out_client);
    return SDG_OK;
  }
  *out_client = (client_t){.local_size = -1, .machines = -1};
  SDG_TRY(sdg_rank_detect(&out_client->rank, &out_client->size,
                          &out_client->local_rank, &origin));
  return pmi_meet(pmi, *text ? text : NULL, timeout_s, out_client->text,
                  sizeof out_client->text);
}

sdg_status_t meeting_hold(meeting_way_t way, const char *helper,
                          meeting_t *out_meeting) {
  const char *number =
      sdg_launcher_value(way == MEETING_PMI ? "PMI_RANK" : "PMIX_RANK");
  const double timeout_s = sdg_options_get()->timeout_s;
  bool is_first = number && strcmp(number, "0") == 0, same = true;
  invitation_t invitation = {.port = 0};
  char text[CLIENT_TEXT_BYTES] = "";
  client_t client;
  sdg_secret_t secret;
  int listener = -1, kept = -1, reached = 0;
  uint16_t port = 0;
  sdg_status_t status = SDG_OK;
  sdg_log_set_rank(number ? atoi(number) : -1);
  out_meeting->pmi_asked = way == MEETING_PMI;
  out_meeting->pmi = out_meeting->pmi_asked ? sdg_launcher_pmi() : -1;
  bool again = way == MEETING_PMIX && note_read(&client);
  if (again)
    SDG_TRY_GOTO(invitation_read(client.text, &invitation), done);
  if (is_first)
    SDG_TRY_GOTO(port_open((uint16_t)invitation.port, &port, &kept, &listener),
                 done);
  if (!again) {
    invitation.port = port;
    if (is_first)
      SDG_TRY_GOTO(invitation_write(&invitation, text, sizeof text), done);
    SDG_TRY_GOTO(invitation_carry(out_meeting->pmi, helper, text, &client),
                 done);
    SDG_TRY_GOTO(invitation_read(client.text, &invitation), done);
  }
  SDG_TRY_GOTO(client_check(&client), done);
  SDG_TRY_GOTO(sdg_secret_find(invitation.secret, "", &secret), done);
  if (is_first)
    SDG_TRY_GOTO(barrier_serve(listener, &secret, client.size, timeout_s,
                               &reached, &same),
                 done);
  else
    SDG_TRY_GOTO(barrier_join(&invitation.place, &secret, client.rank,
                              timeout_s, &reached),
                 done);
  SDG_TRY_GOTO(place_set(&client, &invitation, reached, same), done);
  // PMIx 4 hands out data in shared memory to the first client of a rank only;
  // a program that calls MPI_Init is the second.
  if (way == MEETING_PMIX && setenv("PMIX_MCA_gds", "hash", 0) != 0)
    status = sdg_fail(SDG_E_NO_MEMORY, "for PMIX_MCA_gds");
  *out_meeting = (meeting_t){
      .rank = client.rank,
      .size = client.size,
      .local_rank = client.local_rank < 0 ? client.rank : client.local_rank,
      .port = kept,
      .pmi = out_meeting->pmi,
      .pmi_asked = out_meeting->pmi_asked};
done:
  if (listener >= 0)
    close(listener);
  if (kept >= 0 && status != SDG_OK)
    close(kept);
  return status;
}
