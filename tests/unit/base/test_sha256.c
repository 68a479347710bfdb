// SPDX-License-Identifier: Apache-2.0
// Digests, and codes made with a key: the examples of their standards.
#include "src/base/sha256.h"

#include <string.h>

#include "tests/unit/harness.h"

static void digest_is(const unsigned char *digest, const char *hex) {
  char text[2 * SDG_SHA256_BYTES + 1];
  for (int i = 0; i < SDG_SHA256_BYTES; i++)
    snprintf(text + 2 * i, 3, "%02x", digest[i]);
  ck_assert_str_eq(text, hex);
}

// The examples published with FIPS 180-4, and 10^6 times "a" in odd pieces.
START_TEST(sha256_is_that_of_the_standard) {
  static const struct {
    const char *text, *digest;
  } known[] = {
      {"abc", "ba7816bf8f01cfea414140de5dae2223"
              "b00361a396177a9cb410ff61f20015ad"},
      {"", "e3b0c44298fc1c149afbf4c8996fb924"
           "27ae41e4649b934ca495991b7852b855"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039"
       "a33ce45964ff2167f6ecedd419db06c1"},
  };
  unsigned char digest[SDG_SHA256_BYTES], letters[1000];
  sdg_sha256_t sha;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    sdg_sha256_init(&sha);
    sdg_sha256_add(&sha, known[i].text, strlen(known[i].text));
    sdg_sha256_end(&sha, digest);
    digest_is(digest, known[i].digest);
  }
  memset(letters, 'a', sizeof letters);
  sdg_sha256_init(&sha);
  for (size_t left = 1000000, n = 1; left > 0; left -= n, n = n * 7 % 997) {
    n = n < left ? n : left;
    sdg_sha256_add(&sha, letters, n);
  }
  sdg_sha256_end(&sha, digest);
  digest_is(digest, "cdc76e5c9914fb9281a1c7e284d73e67"
                    "f1809a48a497200e046d39ccc7112cd0");
}
END_TEST

// RFC 4231, test cases 1, 2, 3, 6.
START_TEST(hmac_is_that_of_the_standard) {
  unsigned char key[131], data[50], digest[SDG_SHA256_BYTES];
  sdg_hmac_t hmac;
  memset(key, 0x0b, 20);
  sdg_hmac_init(&hmac, key, 20);
  sdg_hmac_add(&hmac, "Hi ", 3);
  sdg_hmac_add(&hmac, "There", 5);
  sdg_hmac_end(&hmac, digest);
  digest_is(digest, "b0344c61d8db38535ca8afceaf0bf12b"
                    "881dc200c9833da726e9376c2e32cff7");
  sdg_hmac_init(&hmac, "Jefe", 4);
  sdg_hmac_add(&hmac, "what do ya want for nothing?", 28);
  sdg_hmac_end(&hmac, digest);
  digest_is(digest, "5bdcc146bf60754e6a042426089575c7"
                    "5a003f089d2739839dec58b964ec3843");
  memset(key, 0xaa, 131);
  memset(data, 0xdd, 50);
  sdg_hmac_init(&hmac, key, 20);
  sdg_hmac_add(&hmac, data, 50);
  sdg_hmac_end(&hmac, digest);
  digest_is(digest, "773ea91e36800e46854db8ebd09181a7"
                    "2959098b3ef8c122d9635514ced565fe");
  sdg_hmac_init(&hmac, key, 131);
  sdg_hmac_add(&hmac, "Test Using Larger Than Block-Size Key - Hash Key First",
               54);
  sdg_hmac_end(&hmac, digest);
  digest_is(digest, "60e431591ee0b67f0d8a26aacbf5b77f"
                    "8e0bc6213728c5140546040f0ee37f54");
  unsigned char other[SDG_SHA256_BYTES];
  memcpy(other, digest, sizeof other);
  ck_assert(sdg_digest_equal(digest, other));
  other[31] ^= 1;
  ck_assert(!sdg_digest_equal(digest, other));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("sha256");
  TCase *cases = tcase_create("sha256");
  tcase_add_test(cases, sha256_is_that_of_the_standard);
  tcase_add_test(cases, hmac_is_that_of_the_standard);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
