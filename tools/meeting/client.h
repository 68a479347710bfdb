/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the launcher's PMIx server, by means of the program sundog-pmix, which
 * is a client of it for a moment. */
#ifndef SDG_TOOLS_MEETING_CLIENT_H
#define SDG_TOOLS_MEETING_CLIENT_H

#include <limits.h>
#include <stdbool.h>

#include "src/base/status.h"

enum { CLIENT_TEXT_BYTES = 1024 };

/* What PMIx says. A number is -1 if it does not say it. */
typedef struct client {
  char version[32], library[PATH_MAX];
  int rank, size, local_rank, local_size, machines;
  char text[CLIENT_TEXT_BYTES]; /* what rank 0 published */
} client_t;

/* Publishes `text` if this is rank 0, waits until all ranks have called this,
 * and reads what rank 0 published. `program`: path of sundog-pmix. When it
 * returns, this process is no client. SDG_E_PMIX; SDG_E_JOIN_TIMEOUT names the
 * ranks that did not come. */
sdg_status_t client_meet(const char *program, const char *text,
                         double timeout_s, client_t *out_client) SDG_MUST_CHECK;

/* Finds only the library, without a word to the server; false, with the reason
 * in out_client->text, if it cannot be used. */
bool client_library(const char *program, client_t *out_client);

#endif
