/* SPDX-License-Identifier: Apache-2.0 */
/* Draws water levels over shaded terrain, panels side by side, as a PNG.
 *
 * usage: picture OUT.png SHRINK CUTS TERRAIN.npy LEVEL.npy...
 *        one panel per LEVEL; SHRINK pixels of the field give one of the
 *        picture; CUTS marks these rows at the sides of all panels but the
 *        first ("300,560" or "-") */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "npy.h"

enum { margin = 12 };

typedef struct {
  int width, height;
  uint8_t *rgb;
} image_t;

static void fail(const char *what) {
  fprintf(stderr, "picture: %s\n", what);
  exit(EXIT_FAILURE);
}

static void put_chunk(FILE *file, const char *type, const uint8_t *data,
                      uint32_t bytes) {
  uint32_t crc = (uint32_t)crc32(0, (const Bytef *)type, 4);
  if (bytes)
    crc = (uint32_t)crc32(crc, data, bytes);
  const uint32_t words[] = {bytes, crc};
  uint8_t big[2][4];
  for (int w = 0; w < 2; w++)
    for (int i = 0; i < 4; i++)
      big[w][i] = (uint8_t)(words[w] >> (24 - 8 * i));
  if (fwrite(big[0], 1, 4, file) != 4 || fwrite(type, 1, 4, file) != 4 ||
      fwrite(data, 1, bytes, file) != bytes || fwrite(big[1], 1, 4, file) != 4)
    fail("cannot write");
}

static void write_png(const char *path, image_t im) {
  FILE *file = fopen(path, "wb");
  if (!file)
    fail("cannot create the picture");
  size_t line = 3 * (size_t)im.width;
  uLong raw_bytes = (uLong)((line + 1) * (size_t)im.height);
  uint8_t *raw = malloc(raw_bytes);
  uLongf packed_bytes = compressBound(raw_bytes);
  uint8_t *packed = malloc(packed_bytes);
  if (!raw || !packed)
    fail("out of memory");
  for (int r = 0; r < im.height; r++) {
    raw[(line + 1) * (size_t)r] = 0;
    memcpy(raw + (line + 1) * (size_t)r + 1, im.rgb + line * (size_t)r, line);
  }
  if (compress2(packed, &packed_bytes, raw, raw_bytes, 9) != Z_OK)
    fail("zlib failed");
  uint8_t head[13] = {0, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 0};
  for (int i = 0; i < 4; i++) {
    head[i] = (uint8_t)((uint32_t)im.width >> (24 - 8 * i));
    head[4 + i] = (uint8_t)((uint32_t)im.height >> (24 - 8 * i));
  }
  if (fwrite("\x89PNG\r\n\x1a\n", 1, 8, file) != 8)
    fail("cannot write");
  put_chunk(file, "IHDR", head, sizeof head);
  put_chunk(file, "IDAT", packed, (uint32_t)packed_bytes);
  put_chunk(file, "IEND", NULL, 0);
  if (fclose(file) != 0)
    fail("cannot write");
  free(raw);
  free(packed);
}

static double mix(double a, double b, double t) {
  return a + (b - a) * t;
}

static double mean(npy_field_t f, int shrink, int row, int column) {
  double sum = 0;
  for (int r = 0; r < shrink; r++)
    for (int c = 0; c < shrink; c++)
      sum += f.at[(size_t)(row * shrink + r) * (size_t)f.columns +
                  (size_t)(column * shrink + c)];
  return sum / (shrink * shrink);
}

/* Colour of one pixel: land by height and slope; sea by depth, tinted red
 * where the water is high and pale blue where it is low. */
static void shade(double height, double east, double south, double level,
                  double scale, uint8_t rgb[3]) {
  double light = 1 + 0.0015 * (east + south);
  double colour[3];
  light = fmin(fmax(light, 0.6), 1.35);
  if (height >= 0) {
    double t = fmin(height / 1600, 1);
    static const double low[] = {116, 142, 98}, high[] = {222, 214, 196};
    for (int i = 0; i < 3; i++)
      colour[i] = mix(low[i], high[i], t) * light;
  } else {
    double t = fmin(-height / 500, 1);
    static const double shallow[] = {64, 124, 160}, deep[] = {16, 48, 96};
    static const double crest[] = {255, 86, 40}, trough[] = {224, 248, 255};
    double wave = tanh(fabs(level) / scale);
    const double *tint = level > 0 ? crest : trough;
    for (int i = 0; i < 3; i++)
      colour[i] = mix(mix(shallow[i], deep[i], t), tint[i], wave);
  }
  for (int i = 0; i < 3; i++)
    rgb[i] = (uint8_t)fmin(fmax(colour[i], 0), 255);
}

static void draw_panel(image_t im, int left, int shrink, npy_field_t terrain,
                       npy_field_t level, double scale) {
  int height = terrain.rows / shrink, width = terrain.columns / shrink;
  for (int r = 0; r < height; r++)
    for (int c = 0; c < width; c++) {
      double here = mean(terrain, shrink, r, c);
      double east = mean(terrain, shrink, r, c + 1 < width ? c + 1 : c) - here;
      double south =
          mean(terrain, shrink, r + 1 < height ? r + 1 : r, c) - here;
      shade(here, 12 * east / shrink, 12 * south / shrink,
            mean(level, shrink, r, c), scale,
            im.rgb + 3 * ((size_t)(r + margin) * (size_t)im.width +
                          (size_t)(left + c)));
    }
}

/* A tick on both sides of a panel at each row of `cuts`. */
static void draw_cuts(image_t im, int left, int width, int shrink,
                      const char *cuts) {
  for (char *end; *cuts; cuts = *end ? end + 1 : end) {
    long row = strtol(cuts, &end, 10);
    if (end == cuts)
      return;
    long y = margin + row / shrink;
    if (y < 1 || y + 1 >= im.height)
      continue;
    for (long r = y - 1; r < y + 1; r++)
      for (int c = 2; c < margin - 2; c++) {
        size_t line = (size_t)r * (size_t)im.width;
        memset(im.rgb + 3 * (line + (size_t)(left - margin + c)), 0, 3);
        memset(im.rgb + 3 * (line + (size_t)(left + width + c)), 0, 3);
      }
  }
}

int main(int argc, char **argv) {
  int panels = argc - 5;
  if (panels < 1) {
    fprintf(stderr, "usage: picture OUT.png SHRINK CUTS TERRAIN.npy "
                    "LEVEL.npy...\n");
    return 2;
  }
  int shrink = atoi(argv[2]);
  npy_field_t terrain = npy_read(argv[4]);
  if (shrink < 1 || shrink > terrain.rows || shrink > terrain.columns)
    fail("SHRINK must be between 1 and the size of the field");
  int width = terrain.columns / shrink, height = terrain.rows / shrink;
  image_t im = {panels * (width + margin) + margin, height + 2 * margin, NULL};
  size_t bytes = 3 * (size_t)im.width * (size_t)im.height;
  im.rgb = malloc(bytes);
  if (!im.rgb)
    fail("out of memory");
  memset(im.rgb, 255, bytes);
  for (int i = 0; i < panels; i++) {
    npy_field_t level = npy_read(argv[5 + i]);
    if (level.rows != terrain.rows || level.columns != terrain.columns)
      fail("a level and the terrain differ in shape");
    int left = margin + i * (width + margin);
    draw_panel(im, left, shrink, terrain, level, 0.35);
    if (i > 0)
      draw_cuts(im, left, width, shrink, argv[3]);
    free(level.at);
  }
  write_png(argv[1], im);
  free(im.rgb);
  free(terrain.at);
  return EXIT_SUCCESS;
}
