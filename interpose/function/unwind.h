/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the program's functions, which an exception of C++ may leave. Inside
 * this folder only. */
#ifndef SDG_INTERPOSE_FUNCTION_UNWIND_H
#define SDG_INTERPOSE_FUNCTION_UNWIND_H

/* One call that is being carried out, on its caller's stack. */
typedef struct sdg_unwind {
  struct sdg_unwind *outer;
  int depth; // of sdg_capture_enter, at the call
  void (*left)(const struct sdg_unwind *unwind);
} sdg_unwind_t;

/* The function that has *io_unwind on its stack says with the following line
 * what the unwinder calls for its frame:
 *   __asm__ volatile(".cfi_personality 0x1b, sdg_unwind_frame");
 * If an exception leaves the function between begin and end, the frame calls
 * `left` and then restores the depth. */
void sdg_unwind_begin(sdg_unwind_t *io_unwind,
                      void (*left)(const sdg_unwind_t *unwind));
void sdg_unwind_end(const sdg_unwind_t *unwind);

#endif
