// SPDX-License-Identifier: Apache-2.0
// Fuzzes the records that ranks exchange about a call: an input is a list of
// places (two bytes) and values (one byte) to write; even places are in the
// first rank's record, odd ones in the second's.
#include "src/job/agree.c" // its record type is static

#include "tests/fuzz/fuzz.h"

enum { EXTENT = 64 };

static void call_make(sdg_call_t *out) {
  static char descriptor[4];
  *out = (sdg_call_t){.entry_name = "cudnnConvolutionForward", .operands = 3};
  for (int i = 0; i < out->operands; i++) {
    sdg_operand_t *operand = &out->operand[i];
    operand->role = (sdg_role_t)i;
    operand->descriptor = &descriptor[i];
    operand->generation = 1;
    operand->dims = 4;
    for (int d = 0; d < 4; d++) {
      operand->extent[d] = EXTENT;
      operand->stride[d] = (int64_t)1 << (6 * (3 - d));
    }
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  sdg_call_t call;
  union {
    record_t record;
    unsigned char byte[sizeof(record_t)];
  } two[2];
  call_make(&call);
  const int64_t sizes[] = {2, 3};
  for (int i = 0; i < 2; i++)
    FUZZ_HOLDS(record_fill(&call, "pad 1 1", sizes, 2, NULL, &two[i].record) ==
               SDG_OK);
  for (size_t i = 0; i + 3 <= bytes; i += 3) {
    size_t place = (size_t)data[i] << 8 | data[i + 1];
    two[place % 2].byte[place / 2 % sizeof(record_t)] = data[i + 2];
  }
  // Damaged, then with a check sum that fits.
  for (int i = 0; i < 2; i++)
    (void)record_sound(&two[i].record);
  for (int i = 0; i < 2; i++)
    two[i].record.check = check_of(&two[i].record);
  if (!record_sound(&two[0].record) || !record_sound(&two[1].record))
    return 0;
  sdg_nest_t nest[2];
  int64_t extent[2 * SDG_AGREE_SIZES];
  const record_t *records[] = {&two[0].record, &two[1].record};
  sdg_status_t status = records_compare(records[0], 0, records[1], 1);
  FUZZ_HOLDS(status == records_compare(records[1], 1, records[0], 0));
  if (status == SDG_OK && records[0]->operands == call.operands)
    FUZZ_HOLDS(vectors_store(&call, &(room_t){.ranks = 2,
                                              .records = records,
                                              .nest = nest,
                                              .extent = extent}) == SDG_OK);
  return 0;
}
