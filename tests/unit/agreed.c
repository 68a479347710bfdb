// SPDX-License-Identifier: Apache-2.0
// Rules and agreed tensors for tests, without files of the user and exchanges.
#include "tests/unit/agreed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/options.h"
#include "src/call/tag.h"
#include "src/job/job.h"
#include "tests/unit/harness.h"

void agreed_rules(const char *text, sdg_rules_t *out) {
  char path[] = "/tmp/sdg-test-XXXXXX", option[64];
  int fd = mkstemp(path);
  REQUIRE(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
  close(fd);
  snprintf(option, sizeof option, "SUNDOG_RULES=%s", path);
  char view[] = "SUNDOG_VIEW=shard";
  REQUIRE(!sdg_options_load((char *[]){option, view, NULL}));
  sdg_status_t status = sdg_rules_load(sdg_options_get(), AGREED_RANKS, out);
  unlink(path);
  REQUIRE(status == SDG_OK);
}

void agreed_add(sdg_call_t *call, sdg_role_t role, const int64_t *c,
                const int64_t *h, const int64_t *w) {
  static char descriptors[SDG_OPERANDS_MAX];
  sdg_operand_t *operand = &call->operand[call->operands];
  int rank = sdg_job_rank();
  *operand = (sdg_operand_t){
      .role = role,
      .is_output = role == SDG_ROLE_Y,
      .descriptor = &descriptors[call->operands],
      .data = &descriptors[call->operands],
      .elem_bytes = 4,
      .dims = 4,
      .extent = {2, c[rank], h[rank], w[rank]},
      .stride = {c[rank] * h[rank] * w[rank], h[rank] * w[rank], w[rank], 1},
  };
  sdg_tag_touch(operand->descriptor);
  operand->generation = sdg_tag_generation(operand->descriptor);
  const int64_t nesting[] = {4, 3, 2, 1};
  int64_t all[AGREED_RANKS][4];
  for (int r = 0; r < AGREED_RANKS; r++)
    memcpy(all[r], (int64_t[]){2, c[r], h[r], w[r]}, sizeof all[r]);
  REQUIRE(!sdg_tag_set_vector(operand->descriptor, operand->generation,
                              AGREED_RANKS, 4, nesting, &all[0][0]));
  call->operands++;
}
