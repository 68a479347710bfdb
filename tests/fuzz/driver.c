// SPDX-License-Identifier: Apache-2.0
// Replaces libFuzzer if it is missing: runs the inputs of a folder, then a
// fixed number of random changes of them, the same ones each time.
//
// usage: fuzz_NAME FOLDER [CASES]
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/harness.h"

enum { INPUTS = 256, INPUT_BYTES = 1 << 14 };

typedef struct input {
  size_t bytes;
  uint8_t data[INPUT_BYTES];
} input_t;

static input_t inputs[INPUTS], work;
static int count;
static uint64_t state = 88172645463325252u;

static size_t below(size_t limit) {
  state ^= state << 13; // xorshift64
  state ^= state >> 7;
  state ^= state << 17;
  return limit ? (size_t)(state >> 11) % limit : 0;
}

static void input_read(const char *folder, const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "rb");
  if (!file || count == INPUTS)
    exit(2);
  inputs[count].bytes = fread(inputs[count].data, 1, INPUT_BYTES, file);
  fclose(file);
  count++;
}

// Replaces `gone` bytes by `bytes` others.
static void replace(size_t at, size_t gone, const uint8_t *from, size_t bytes) {
  if (work.bytes - gone + bytes > INPUT_BYTES)
    return;
  memmove(work.data + at + bytes, work.data + at + gone,
          work.bytes - at - gone);
  memcpy(work.data + at, from, bytes);
  work.bytes += bytes - gone;
}

static void change(void) {
  static const uint8_t odd[] = {0,   1,   0x7f, 0x80, 0xff, '\n',
                                '0', '9', '-',  '[',  ']',  '=',
                                ':', ',', '"',  '\'', '{',  '('};
  const input_t *other = &inputs[below((size_t)count)];
  size_t at = below(work.bytes + 1), from = below(other->bytes + 1);
  size_t most = below(4) ? 8 : 200;
  size_t left = work.bytes - at < most ? work.bytes - at : most;
  size_t there = other->bytes - from < most ? other->bytes - from : most;
  uint8_t byte = odd[below(sizeof odd)];
  switch (below(6)) {
  case 0:
    if (left)
      work.data[at] ^= (uint8_t)(1u << below(8));
    break;
  case 1:
    replace(at, left ? 1 : 0, &byte, 1);
    break;
  case 2:
    replace(at, below(left + 1), work.data, 0);
    break;
  case 3:
    replace(at, 0, other->data + from, below(there + 1));
    break;
  case 4:
    replace(at, below(left + 1), other->data + from, below(there + 1));
    break;
  default:
    for (size_t i = below(left + 1); i > 0; i--)
      work.data[at + i - 1] = (uint8_t)below(256);
    break;
  }
}

int main(int argc, char **argv) {
  DIR *folder = opendir(argc > 1 ? argv[1] : ".");
  int64_t cases = random_cases(argc > 2 ? atoll(argv[2]) : 20000);
  for (struct dirent *entry; folder && (entry = readdir(folder));)
    if (entry->d_name[0] != '.')
      input_read(argv[1], entry->d_name);
  if (folder)
    closedir(folder);
  if (count == 0) {
    fprintf(stderr, "no inputs\n");
    return 2;
  }
  // Readers print something about each of thousands of inputs.
  if (!getenv("FUZZ_SHOW")) {
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
  }
  for (int i = 0; i < count; i++)
    LLVMFuzzerTestOneInput(inputs[i].data, inputs[i].bytes);
  for (int64_t i = 0; i < cases; i++) {
    work = inputs[below((size_t)count)];
    for (size_t n = 1 + below(4); n > 0; n--)
      change();
    LLVMFuzzerTestOneInput(work.data, work.bytes);
  }
  return 0;
}
