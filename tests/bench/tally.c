// SPDX-License-Identifier: Apache-2.0
// LD_AUDIT module: counts the calls of libsundog.so to functions of other
// libraries, and the threads that any library creates.
//
// The dynamic linker asks this module about each binding, those by dlsym
// included, and binds the caller to a few instructions that count and jump to
// the function. The libraries are not changed, so NVIDIA's are counted like the
// host device's. TALLY_FILE names the file with the counters (tally.h).
#include "tests/bench/tally.h"

#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define HIDDEN __attribute__((visibility("hidden")))

_Static_assert(offsetof(tally_t, thread) == 0 && offsetof(tally_t, own) == 8 &&
                   offsetof(tally_t, other) == 8 + 8 * 1024 &&
                   TALLY_ROWS == 1024,
               "the assembly below has these numbers");

// Used by the assembly: the counters, and the function behind each thunk.
HIDDEN tally_t *tally;
HIDDEN uintptr_t tally_function[TALLY_ROWS];

enum { THUNK_BYTES = 64 };
HIDDEN extern const char tally_thunks[];

// Thunks change only registers that no argument is passed in.
__asm__(".text\n"
        ".balign 64\n"
        ".hidden tally_thunks\n"
        ".globl tally_thunks\n"
        "tally_thunks:\n"
        ".set tally_i, 0\n"
        ".rept 1024\n"
        ".balign 64\n"
#if defined(__x86_64__)
        "  movq tally(%rip), %r11\n"
        "  movq %fs:0, %r10\n"
        "  cmpq %r10, (%r11)\n"
        "  jne 1f\n"
        "  lock incq 8 + 8 * tally_i(%r11)\n"
        "  jmp *tally_function + 8 * tally_i(%rip)\n"
        "1:\n"
        "  lock incq 8 + 8 * 1024 + 8 * tally_i(%r11)\n"
        "  jmp *tally_function + 8 * tally_i(%rip)\n"
#elif defined(__aarch64__)
        "  adrp x16, tally\n"
        "  ldr x16, [x16, :lo12:tally]\n"
        "  ldr x9, [x16]\n"
        "  mrs x10, tpidr_el0\n"
        "  mov x11, #8 + 8 * tally_i\n"
        "  cmp x9, x10\n"
        "  mov x9, #8 + 8 * 1024 + 8 * tally_i\n"
        "  csel x11, x11, x9, eq\n"
        "  mov x9, #8 * tally_i\n"
        "  b tally_count\n"
#else
#error "no thunks for this processor"
#endif
        ".set tally_i, tally_i + 1\n"
        ".endr\n"
#if defined(__aarch64__)
        "tally_count:\n"
        "  add x16, x16, x11\n"
        "1:\n"
        "  ldxr x11, [x16]\n"
        "  add x11, x11, #1\n"
        "  stxr w10, x11, [x16]\n"
        "  cbnz w10, 1b\n"
        "  adrp x16, tally_function\n"
        "  add x16, x16, :lo12:tally_function\n"
        "  ldr x16, [x16, x9]\n"
        "  br x16\n"
#endif
);

static void tally_open(void) {
  static tally_t nowhere;
  const char *path = getenv("TALLY_FILE");
  int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
  void *map = MAP_FAILED;
  if (fd >= 0 && ftruncate(fd, sizeof(tally_t)) == 0)
    map =
        mmap(NULL, sizeof(tally_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd >= 0)
    close(fd);
  tally = map == MAP_FAILED ? &nowhere : map;
}

EXPORT unsigned la_version(unsigned version) {
  tally_open();
  return version < LAV_CURRENT ? version : LAV_CURRENT;
}

EXPORT unsigned la_objopen(struct link_map *map, Lmid_t lmid,
                           uintptr_t *cookie) {
  (void)lmid;
  *cookie = (uintptr_t)map;
  return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

// "" for the program.
static const char *object_name(const uintptr_t *cookie) {
  const char *path = ((const struct link_map *)*cookie)->l_name;
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static int counts(const char *caller, const char *name) {
  return strncmp(caller, "libsundog", 9) == 0 ||
         (*caller && strcmp(name, "pthread_create") == 0);
}

static int row_is(int row, const char *caller, const char *name,
                  uintptr_t function) {
  return tally_function[row] == function &&
         strcmp(tally->row[row].name, name) == 0 &&
         strcmp(tally->row[row].caller, caller) == 0;
}

static void put(char *to, size_t bytes, const char *text) {
  size_t length = strnlen(text, bytes - 1);
  memcpy(to, text, length);
  to[length] = 0;
}

EXPORT uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index,
                              uintptr_t *from, uintptr_t *to, unsigned *flags,
                              const char *name) {
  (void)index;
  (void)flags;
  const char *caller = object_name(from);
  int type = ELF64_ST_TYPE(symbol->st_info), row = 0;
  if (!counts(caller, name) || (type != STT_FUNC && type != STT_GNU_IFUNC))
    return symbol->st_value;
  while (row < tally->rows && !row_is(row, caller, name, symbol->st_value))
    row++;
  if (row == TALLY_ROWS)
    return symbol->st_value;
  if (row == tally->rows) {
    tally_function[row] = symbol->st_value;
    put(tally->row[row].name, TALLY_NAME, name);
    put(tally->row[row].caller, TALLY_OBJECT, caller);
    put(tally->row[row].callee, TALLY_OBJECT, object_name(to));
    tally->rows++;
  }
  return (uintptr_t)tally_thunks + (uintptr_t)row * THUNK_BYTES;
}
