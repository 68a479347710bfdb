// SPDX-License-Identifier: Apache-2.0
// Digests of bytes equal those of the published algorithm.
#include "src/base/hash.h"

#include <string.h>

#include "tests/unit/harness.h"

static uint64_t value_of(const void *data, size_t bytes) {
  sdg_digest_t digest;
  sdg_digest_init(&digest);
  sdg_digest_add(&digest, data, bytes);
  return sdg_digest_value(&digest);
}

START_TEST(digests_are_those_of_xxh64) {
  ck_assert_uint_eq(value_of("", 0), UINT64_C(0xef46db3751d8e999));
  ck_assert_uint_eq(value_of("a", 1), UINT64_C(0xd24ec4f1a98c6e5b));
  ck_assert_uint_eq(value_of("abc", 3), UINT64_C(0x44bc2cf5ad770999));
  const char *text =
      "Nobody inspects the spammish repetition"; // longer than a stripe
  ck_assert_uint_eq(value_of(text, strlen(text)), UINT64_C(0xfbcea83c8a378bf1));
}
END_TEST

START_TEST(digest_does_not_depend_on_the_pieces) {
  unsigned char data[200];
  for (size_t i = 0; i < sizeof data; i++)
    data[i] = (unsigned char)(i * 37);
  for (size_t bytes = 0; bytes <= sizeof data; bytes++) {
    uint64_t whole = value_of(data, bytes);
    for (size_t first = 0; first <= bytes; first += 7) {
      sdg_digest_t digest;
      sdg_digest_init(&digest);
      sdg_digest_add(&digest, data, first);
      sdg_digest_add(&digest, data + first, (bytes - first) / 2);
      sdg_digest_add(&digest, data + first + (bytes - first) / 2,
                     bytes - first - (bytes - first) / 2);
      ck_assert_uint_eq(sdg_digest_value(&digest), whole);
    }
  }
}
END_TEST

START_TEST(a_changed_bit_changes_the_digest) {
  unsigned char data[77] = {0};
  uint64_t zero = value_of(data, sizeof data);
  for (size_t i = 0; i < sizeof data; i++) {
    data[i] = 128;
    ck_assert_uint_ne(value_of(data, sizeof data), zero);
    data[i] = 0;
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("digest");
  TCase *cases = tcase_create("digest");
  tcase_add_test(cases, digests_are_those_of_xxh64);
  tcase_add_test(cases, digest_does_not_depend_on_the_pieces);
  tcase_add_test(cases, a_changed_bit_changes_the_digest);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
