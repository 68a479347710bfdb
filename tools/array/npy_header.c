// SPDX-License-Identifier: Apache-2.0
// Parses the Python dictionary in a .npy header, and writes one.
#include "tools/array/npy_header.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DTYPE_TEXT = 32, KEY_TEXT = 16, ALIGN = 64 };

// ---- types -----------------------------------------------------------------

static bool size_is_known(char kind, long bytes) {
  switch (kind) {
  case 'b':
    return bytes == 1;
  case 'i':
  case 'u':
    return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
  case 'f':
    return bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
  case 'c':
    return bytes == 8 || bytes == 16 || bytes == 32;
  case 'V': // bytes without a meaning to NumPy: bfloat16 is saved as V2
    return bytes >= 1 && bytes <= 16;
  default:
    return false;
  }
}

// Returns the number if the text consists of one to four digits; -1 otherwise.
static long short_number(const char *text) {
  size_t n = strspn(text, "0123456789");
  return n >= 1 && n <= 4 && text[n] == '\0' ? strtol(text, NULL, 10) : -1;
}

// Reads names such as "float32". Returns the kind and the size in bytes; kind 0
// if the name is unknown.
static char long_name(const char *text, long *out_bytes) {
  static const struct {
    const char *name;
    char kind;
  } names[] = {{"float", 'f'}, {"int", 'i'}, {"uint", 'u'}, {"complex", 'c'}};
  for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
    size_t n = strlen(names[i].name);
    long bits = strncmp(text, names[i].name, n) ? -1 : short_number(text + n);
    if (bits > 0 && bits % 8 == 0) {
      *out_bytes = bits / 8;
      return names[i].kind;
    }
  }
  *out_bytes = 1;
  return strcmp(text, "bool") == 0 ? 'b' : 0;
}

sdg_status_t sdg_dtype_parse(const char *path, const char *text,
                             char out_dtype[SDG_DTYPE_BYTES],
                             int *out_elem_bytes) {
  long bytes;
  char kind = long_name(text, &bytes);
  char order = '<';
  if (!kind) {
    const char *at = text;
    if (*at && strchr("<>|=", *at))
      order = *at++;
    kind = *at;
    bytes = kind ? short_number(at + 1) : -1;
  }
  if (!size_is_known(kind, bytes))
    return sdg_fail(SDG_E_NPY_FORMAT,
                    "%s: type '%s' is not a number of fixed size (b1, i1 to "
                    "i8, u1 to u8, f2 to f16, c8 to c32, V1 to V16)",
                    path, text);
  bool plain = bytes == 1 || kind == 'V';
  snprintf(out_dtype, SDG_DTYPE_BYTES, "%c%c%d",
           plain          ? '|'
           : order == '>' ? '>'
                          : '<',
           kind, (int)bytes);
  *out_elem_bytes = (int)bytes;
  return SDG_OK;
}

// Stores the bytes of all elements in the header. Returns false if their number
// plus the offset (at most SDG_NPY_READ_BYTES) overflows.
static bool count_bytes(sdg_npy_header_t *header) {
  int64_t bytes = header->elem_bytes;
  for (int d = 0; d < header->dims; d++)
    if (header->extent[d] == 0)
      bytes = 0; // however large the others are
  for (int d = 0; d < header->dims; d++)
    if (bytes && __builtin_mul_overflow(bytes, header->extent[d], &bytes))
      return false;
  header->data_bytes = bytes;
  return bytes <= INT64_MAX - SDG_NPY_READ_BYTES;
}

sdg_status_t sdg_npy_header_init(const char *path, const char *dtype, int dims,
                                 const int64_t *extent,
                                 sdg_npy_header_t *out_header) {
  sdg_npy_header_t header = {.dims = dims};
  SDG_TRY(sdg_dtype_parse(path, dtype, header.dtype, &header.elem_bytes));
  if (dims < 0 || dims > SDG_DIMS_MAX)
    return sdg_fail(SDG_E_NPY_FORMAT,
                    "%s: %d dimensions; at most %d are possible", path, dims,
                    SDG_DIMS_MAX);
  for (int d = 0; d < dims; d++) {
    header.extent[d] = extent[d];
    if (extent[d] < 0)
      return sdg_fail(SDG_E_NPY_FORMAT, "%s: an extent of %" PRId64, path,
                      extent[d]);
  }
  if (!count_bytes(&header))
    return sdg_fail(SDG_E_NPY_FORMAT, "%s: the array is larger than any file",
                    path);
  *out_header = header;
  return SDG_OK;
}

// ---- the dictionary --------------------------------------------------------

typedef struct cursor { // the rest of the header's text
  const char *at, *end;
} cursor_t;

static bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_space(cursor_t *cursor) {
  while (cursor->at < cursor->end && is_space(*cursor->at))
    cursor->at++;
}

// Skips spaces, then takes `c` if it is next.
static bool take(cursor_t *cursor, char c) {
  skip_space(cursor);
  if (cursor->at == cursor->end || *cursor->at != c)
    return false;
  cursor->at++;
  return true;
}

static bool take_word(cursor_t *cursor, const char *word) {
  skip_space(cursor);
  size_t n = strlen(word);
  if ((size_t)(cursor->end - cursor->at) < n || memcmp(cursor->at, word, n))
    return false;
  cursor->at += n;
  return true;
}

// Takes a quoted text without escapes, of less than `bytes` printable
// characters.
static bool take_string(cursor_t *cursor, char *out, size_t bytes) {
  char quote = take(cursor, '\'') ? '\'' : '"';
  if (quote == '"' && !take(cursor, '"'))
    return false;
  size_t n = 0;
  for (; cursor->at < cursor->end && *cursor->at != quote; cursor->at++) {
    char c = *cursor->at;
    if (n + 1 >= bytes || c < ' ' || c > '~' || c == '\\')
      return false;
    out[n++] = c;
  }
  out[n] = '\0';
  return take(cursor, quote);
}

static bool take_number(cursor_t *cursor, int64_t *out_number) {
  skip_space(cursor);
  int64_t number = 0;
  const char *start = cursor->at;
  for (; cursor->at < cursor->end && isdigit((unsigned char)*cursor->at);
       cursor->at++)
    if (__builtin_mul_overflow(number, 10, &number) ||
        __builtin_add_overflow(number, *cursor->at - '0', &number))
      return false;
  if (cursor->at == start)
    return false;
  if (cursor->at < cursor->end && *cursor->at == 'L') // Python 2's long
    cursor->at++;
  *out_number = number;
  return true;
}

// "()", "(3,)", "(3, 4)", "(3, 4,)"; Takes a tuple of extents. *out_dims counts
// all extents, also those that do not fit into out_extent.
static bool take_shape(cursor_t *cursor, int64_t *out_extent, int *out_dims) {
  int dims = 0;
  bool comma = true; // "(3)" is a number, not a shape
  if (!take(cursor, '('))
    return false;
  while (!take(cursor, ')')) {
    int64_t extent;
    if (!comma || !take_number(cursor, &extent))
      return false;
    if (dims < SDG_DIMS_MAX)
      out_extent[dims] = extent;
    dims++;
    comma = take(cursor, ',');
    if (dims == 1 && !comma)
      return false;
  }
  *out_dims = dims;
  return true;
}

enum { HAS_DESCR = 1, HAS_ORDER = 2, HAS_SHAPE = 4, HAS_ALL = 7 };

typedef struct dictionary {
  int has;
  char descr[DTYPE_TEXT];
  bool fortran_order;
  int dims;
  int64_t extent[SDG_DIMS_MAX];
} dictionary_t;

// Takes one "'key': value". Returns NULL, or the fault as text.
static const char *take_entry(cursor_t *cursor, dictionary_t *dict) {
  char key[KEY_TEXT];
  if (!take_string(cursor, key, sizeof key))
    return "a key is not one of descr, fortran_order, shape";
  if (!take(cursor, ':'))
    return "a key has no value";
  int has;
  if (strcmp(key, "descr") == 0) {
    has = HAS_DESCR;
    if (!take_string(cursor, dict->descr, sizeof dict->descr))
      return "descr is not the name of a plain type (records are not read)";
  } else if (strcmp(key, "fortran_order") == 0) {
    has = HAS_ORDER;
    dict->fortran_order = take_word(cursor, "True");
    if (!dict->fortran_order && !take_word(cursor, "False"))
      return "fortran_order is neither True nor False";
  } else if (strcmp(key, "shape") == 0) {
    has = HAS_SHAPE;
    if (!take_shape(cursor, dict->extent, &dict->dims))
      return "shape is not a tuple of extents";
  } else {
    return "a key is not one of descr, fortran_order, shape";
  }
  if (dict->has & has)
    return "a key is there twice";
  dict->has |= has;
  return NULL;
}

// Returns NULL, or the fault as text.
static const char *dictionary_parse(cursor_t cursor, dictionary_t *dict) {
  *dict = (dictionary_t){.has = 0};
  if (!take(&cursor, '{'))
    return "the header does not begin with {";
  bool comma = true;
  while (!take(&cursor, '}')) {
    if (!comma)
      return "a comma or } is missing";
    const char *fault = take_entry(&cursor, dict);
    if (fault)
      return fault;
    comma = take(&cursor, ',');
  }
  skip_space(&cursor);
  if (cursor.at != cursor.end)
    return "something follows the closing }";
  if (dict->has != HAS_ALL)
    return "one of descr, fortran_order, shape is missing";
  return NULL;
}

// ---- the whole header ------------------------------------------------------

sdg_status_t sdg_npy_header_parse(const char *path, const void *bytes,
                                  size_t count, sdg_npy_header_t *out_header) {
  const unsigned char *b = bytes;
  if (count < 10 || memcmp(b, "\x93NUMPY", 6) != 0)
    return sdg_fail(SDG_E_NPY_FORMAT, "%s does not begin as a .npy file", path);
  int version = b[6];
  if (version < 1 || version > 3 || b[7] != 0)
    return sdg_fail(SDG_E_NPY_FORMAT, "%s has format version %d.%d", path, b[6],
                    b[7]);
  // The length of the text is little-endian, 2 bytes in version 1, then 4.
  size_t prefix = version == 1 ? 10 : 12;
  size_t length = (size_t)b[8] | (size_t)b[9] << 8;
  if (version > 1 && count >= prefix)
    length |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
  if (length > SDG_NPY_READ_BYTES - prefix)
    return sdg_fail(SDG_E_NPY_FORMAT, "%s: a header of %zu bytes is too long",
                    path, length);
  if (count < prefix || count - prefix < length)
    return sdg_fail(SDG_E_NPY_FORMAT, "%s ends within its header", path);
  const char *text = (const char *)b + prefix;
  dictionary_t dict;
  const char *fault = dictionary_parse((cursor_t){text, text + length}, &dict);
  if (fault)
    return sdg_fail(SDG_E_NPY_FORMAT, "%s: %s", path, fault);
  sdg_npy_header_t header;
  SDG_TRY(
      sdg_npy_header_init(path, dict.descr, dict.dims, dict.extent, &header));
  header.fortran = dict.fortran_order && dict.dims > 1;
  header.data_offset = (int64_t)(prefix + length);
  *out_header = header;
  return SDG_OK;
}

int sdg_npy_header_format(sdg_npy_header_t *header, char *out) {
  char shape[SDG_DIMS_MAX * 24] = "";
  int used = 0;
  for (int d = 0; d < header->dims; d++)
    used += snprintf(shape + used, sizeof shape - (size_t)used,
                     "%s%" PRId64 "%s", d ? " " : "", header->extent[d],
                     d + 1 < header->dims || header->dims == 1 ? "," : "");
  int n =
      10 + snprintf(out + 10, SDG_NPY_WRITE_BYTES - 10,
                    "{'descr': '%s', 'fortran_order': %s, "
                    "'shape': (%s), }",
                    header->dtype, header->fortran ? "True" : "False", shape);
  // Filled with spaces and closed by a line end, so that data is aligned.
  int total = (n + 1 + ALIGN - 1) / ALIGN * ALIGN;
  memset(out + n, ' ', (size_t)(total - n));
  out[total - 1] = '\n';
  memcpy(out, "\x93NUMPY\x01\x00", 8);
  out[8] = (char)((total - 10) & 0xff);
  out[9] = (char)((total - 10) >> 8);
  header->data_offset = total;
  return total;
}
