// SPDX-License-Identifier: Apache-2.0
// A program that does not know its rank does the same on every rank. So if a
// file with the same name for all was written, every rank has written it.
#include "tools/outputs/outputs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/base/hash.h"
#include "src/base/status.h"
#include "tools/program/image.h"
#include "tools/program/program.h"

enum {
  HEAD_BYTES = 4096,       // compared, to find files that were appended to
  LINE_BYTES = 256,        // of the first line of a text
  SCRIPT_BYTES = 16 << 20, // no script is longer
};

static void words_free(char **words) {
  for (size_t i = 0; words && words[i]; i++)
    free(words[i]);
  free(words);
}

static bool names_rank(const char *word) {
  return strstr(word, "{rank}") || strstr(word, "{local_rank}");
}

static bool file_stat(const char *name, struct stat *out) {
  return *name && stat(name, out) == 0 && S_ISREG(out->st_mode);
}

// Hashes the first bytes of a file.
static uint64_t head_hash(const char *name, size_t bytes) {
  char head[HEAD_BYTES];
  int file = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  ssize_t n = file < 0 ? 0 : read(file, head, bytes);
  if (file >= 0)
    close(file);
  return sdg_hash_bytes(SDG_HASH_SEED, head, n > 0 ? (size_t)n : 0);
}

static size_t head_bytes(const struct stat *was) {
  return was->st_size < HEAD_BYTES ? (size_t)was->st_size : HEAD_BYTES;
}

static void name_note(outputs_t *out, int word, int at) {
  outputs_name_t *name = &out->name[out->names++];
  const char *path = out->word[word] + at;
  *name = (outputs_name_t){.word = word, .at = at};
  if (file_stat(path, &name->was))
    name->head = head_hash(path, head_bytes(&name->was));
  else
    name->was.st_nlink = 0;
}

void outputs_note(const launch_t *launch, int size, outputs_t *out) {
  *out = (outputs_t){.launch = launch, .size = size};
  int words = 0;
  if (!launch->asked || launch->streams.whole || size < 2)
    return;
  while (launch->program[words])
    words++;
  out->word = launch_arguments(launch->program, 0, size, 0);
  out->name = calloc(2 * (size_t)words, sizeof *out->name);
  clock_gettime(CLOCK_REALTIME, &out->begun);
  for (int i = 1; out->word && out->name && i < words; i++) {
    const char *value = strchr(out->word[i], '=');
    if (names_rank(launch->program[i]))
      continue;
    name_note(out, i, 0);
    if (value)
      name_note(out, i, (int)(value + 1 - out->word[i]));
  }
}

// ---- what a program can know -----------------------------------------------

static bool has(const image_t *image, const char *text) {
  return memmem(image->bytes, image->size, text, strlen(text)) != NULL;
}

// Scripts may get the rank in any way, from any library.
static bool script_knows(const image_t *image) {
  if (image->size > SCRIPT_BYTES)
    return false;
  char *text = strndup(image->bytes, image->size);
  bool knows = text && strcasestr(text, "rank");
  free(text);
  return knows;
}

static bool file_knows(const char *path) {
  image_t image;
  struct stat is;
  if (!file_stat(path, &is) || !image_open(path, &image))
    return false;
  bool knows = image_elf(&image)
                   ? has(&image, "_RANK") || has(&image, "sundog_") ||
                         has(&image, "omm_rank") || has(&image, "nitRank")
                   : script_knows(&image);
  image_close(&image);
  return knows;
}

static bool names_file(const char *word, struct stat *out) {
  const char *value = strchr(word, '=');
  return file_stat(word, out) || (value && file_stat(value + 1, out));
}

static bool was_written(const outputs_name_t *name, const struct stat *now) {
  const struct stat *was = &name->was;
  return was->st_nlink == 0 || was->st_ino != now->st_ino ||
         was->st_dev != now->st_dev || was->st_size != now->st_size ||
         was->st_mtim.tv_sec != now->st_mtim.tv_sec ||
         was->st_mtim.tv_nsec != now->st_mtim.tv_nsec;
}

// Returns whether it is a module of Python, whose file is not among the words.
static bool is_module(char *const *words) {
  const char *slash = strrchr(*words, '/');
  bool python = strncmp(slash ? slash + 1 : *words, "python", 6) == 0;
  for (int i = 1; python && words[i] && *words[i] == '-'; i++)
    if (strcmp(words[i], "-m") == 0)
      return true;
  return false;
}

// `written`: the file that was written is no script.
static bool program_knows(const outputs_t *outputs,
                          const outputs_name_t *written) {
  char *const *raw = outputs->launch->program;
  program_t program;
  if (is_module(raw))
    return true;
  for (int i = 1; raw[i]; i++) {
    struct stat is;
    if (strstr(raw[i], "RANK")) // a variable, in words of a shell
      return true;
    if (names_rank(raw[i]) && !names_file(outputs->word[i], &is))
      return true;
  }
  for (int i = 0; i < outputs->names; i++)
    if (outputs->name[i].word != written->word &&
        file_knows(outputs->word[outputs->name[i].word] + outputs->name[i].at))
      return true;
  return !program_readable(outputs->word[0]) ||
         program_examine(outputs->word[0], &program) != SDG_OK ||
         file_knows(program.path);
}

// ---- what the ranks have written -------------------------------------------

static bool is_after(const struct timespec *a, const struct timespec *b) {
  return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec
                                : a->tv_nsec > b->tv_nsec;
}

// Bytes that a rank has written to other files than those whose names have its
// rank.
static int64_t wrote_else(const outputs_t *outputs, int rank) {
  char **words =
      launch_arguments(outputs->launch->program, rank, outputs->size, rank);
  int64_t bytes = outputs->wrote_bytes[rank];
  for (int i = 1; words && words[i]; i++) {
    struct stat is;
    if (names_rank(outputs->launch->program[i]) && names_file(words[i], &is) &&
        is_after(&is.st_mtim, &outputs->begun))
      bytes -= is.st_size;
  }
  words_free(words);
  return bytes;
}

static bool all_wrote(const outputs_t *outputs, int64_t bytes) {
  int64_t most = 0;
  for (int r = 0; r < outputs->size; r++) {
    int64_t wrote = wrote_else(outputs, r);
    most = wrote > most ? wrote : most;
    if (2 * wrote < bytes) // pieces may differ
      return false;
  }
  return most >= bytes;
}

// Returns the bytes of the first line of a text; 0 if it is none.
static size_t line_bytes(const image_t *image) {
  const char *end = memchr(image->bytes, '\n',
                           image->size < LINE_BYTES ? image->size : LINE_BYTES);
  size_t line = end ? (size_t)(end + 1 - image->bytes) : 0;
  for (size_t i = 0; i + 1 < line; i++)
    if ((image->bytes[i] < ' ' && image->bytes[i] != '\t') ||
        image->bytes[i] == 0x7f)
      return 0;
  return line;
}

// Whether ranks seem to have appended to the file: it is a text that begins
// with what was there before, or whose first line is there again. A piece that
// is written over a shorter one may begin with what was there, too.
static bool was_appended(const outputs_name_t *name, const char *path,
                         const struct stat *now) {
  image_t image;
  if (!image_open(path, &image))
    return false;
  size_t line = line_bytes(&image);
  bool begins = name->was.st_nlink > 0 && now->st_size > name->was.st_size &&
                head_hash(path, head_bytes(&name->was)) == name->head;
  char again[1 + LINE_BYTES] = "\n";
  memcpy(again + 1, image.bytes, line);
  bool recurs =
      line > 0 && memmem(image.bytes + line - 1, image.size - line + 1, again,
                         1 + line) != NULL;
  image_close(&image);
  return line > 0 && (begins || recurs);
}

static bool is_shared(const outputs_t *outputs, const outputs_name_t *name) {
  const char *path = outputs->word[name->word] + name->at;
  struct stat now;
  // With --ranks-folder a relative name is another file on each rank.
  return (*path == '/' || !outputs->launch->streams.folder) &&
         file_stat(path, &now) && now.st_size > 0 && was_written(name, &now) &&
         all_wrote(outputs, now.st_size) && !was_appended(name, path, &now) &&
         !program_knows(outputs, name);
}

void outputs_say(const outputs_t *outputs) {
  for (int i = 0; i < outputs->names; i++) {
    const outputs_name_t *name = &outputs->name[i];
    if (!is_shared(outputs, name))
      continue;
    const char *word = outputs->launch->program[name->word];
    const char *path = outputs->word[name->word] + name->at;
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *dot = *base ? strrchr(base + 1, '.') : NULL;
    size_t tail = dot ? strlen(dot) : 0;
    (void)!sdg_fail(
        SDG_E_OUTPUT_SHARED,
        "%s was written, and all %d ranks were given this name: unless the "
        "program gathers the pieces, it has that of one rank; write "
        "'%.*s.{rank}%s'",
        path, outputs->size, (int)(strlen(word) - tail), word, dot ? dot : "");
  }
}

void outputs_fini(outputs_t *outputs) {
  words_free(outputs->word);
  free(outputs->name);
}
