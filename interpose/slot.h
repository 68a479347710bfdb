/* SPDX-License-Identifier: Apache-2.0 */
/* The table of entries and the jump targets of their exported stubs. */
#ifndef SDG_INTERPOSE_SLOT_H
#define SDG_INTERPOSE_SLOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rules/vendor/args.h"
#include "rules/vendor/gemm.h"
#include "rules/vendor/vector.h"
#include "rules/vendor/writes.h"
#include "src/base/vendor.h"
#include "src/call/call.h"
#include "src/call/memory_access.h"

enum { SDG_ENTRY_NOWHERE = SDG_NOWHERE };

/* An operand of a captured entry; offsets into its struct sdg_args_. */
typedef struct sdg_entry_operand {
  sdg_role_t role;
  sdg_operand_kind_t kind;
  bool is_output;
  bool is_updated; /* an output that is read too, whatever beta is */
  uint16_t descriptor;
  uint16_t data; /* SDG_ENTRY_NOWHERE: the call has no pointer to it */
} sdg_entry_operand_t;

/* A pointer through which an entry reads or writes; offsets into its struct
 * sdg_args_. Sizes are size_t members, SDG_ENTRY_NOWHERE if unknown. */
typedef struct sdg_entry_access {
  uint16_t pointer;
  bool reads, writes;
  uint16_t width, pitch, height;
} sdg_entry_access_t;

/* The result of an entry whose library is missing. */
typedef enum sdg_refusal {
  SDG_REFUSAL_CUDNN,   /* CUDNN_STATUS_NOT_INITIALIZED */
  SDG_REFUSAL_RUNTIME, /* cudaErrorInitializationError */
  SDG_REFUSAL_CUBLAS,  /* CUBLAS_STATUS_NOT_INITIALIZED */
  SDG_REFUSAL_NCCL,    /* ncclSystemError */
  SDG_REFUSAL_TEXT,    /* an empty message */
} sdg_refusal_t;

/* One entry; generated from entries.def. */
typedef struct sdg_entry {
  const char *name;
  void *stub;   /* the function that libsundog.so exports */
  void *probe;  /* NULL: no op uses the entry */
  void *whole;  /* the probe in the whole view; NULL: the same */
  void *shard;  /* the probe in the shard view; NULL: `probe` */
  void *kernel; /* the probe of a launch where the rules have kernels to split;
                   NULL: it launches nothing */
  /* Reads the struct sdg_args_ of a call on vectors; NULL for other entries. */
  void (*vector)(const void *args, sdg_vector_t *out);
  /* Says from the struct sdg_args_ what a call writes besides vectors and
   * tensors that are operands; NULL: nothing. */
  void (*writes)(const void *args, sdg_writes_t *out);
  /* Makes a call on vectors that returns a value, with other vectors
   * (sdg_vector_call_t); NULL for other entries. */
  int (*vector_call)(const void *args, const sdg_vector_t *vector);
  bool memory; /* allocates or frees memory: `whole` is used in the shard view,
                  too */
  /* Reads the struct sdg_args_ of a product of matrices; NULL for other
   * entries. The probe stays only if the rules mention products. */
  void (*product)(const void *args, sdg_gemm_t *out);
  sdg_library_t library;
  sdg_family_t family;
  sdg_refusal_t refusal;
  bool is_query;
  bool space; /* opaque: refused only where D, H or W may be split */
  /* Offsets; SDG_ENTRY_NOWHERE if the call has no such argument. */
  uint16_t handle, op, stream;
  bool everything; /* may use any device memory */
  bool per_thread; /* its default stream is the thread's */
  int operands;
  sdg_entry_operand_t operand[SDG_OPERANDS_MAX];
  int accesses;
  const sdg_entry_access_t *access;
} sdg_entry_t;
extern const sdg_entry_t sdg_entry[SDG_ENTRY_COUNT];
extern const char *const sdg_entry_name[SDG_ENTRY_COUNT];

/* The number of the entry with this name, -1 if no entry has it. Calls no
 * function of libc. */
int sdg_entry_find(const char *name);

/* sdg_slot: the jump targets of the stubs. sdg_real: the real functions, to
 * which the probes jump. Neither is ever NULL: until an entry's first call both
 * hold a trampoline that resolves it, as lazy binding does. */
extern _Atomic(void *) sdg_slot[SDG_ENTRY_COUNT];
extern _Atomic(void *) sdg_real[SDG_ENTRY_COUNT];

/* The trampoline calls this: returns the jump target. If the library is
 * missing, the slot stays unresolved and the entry's refusal is returned.
 * saved: the call's registers, for functions of the program's own. */
void *sdg_slot_resolve(unsigned entry, const char *saved);

/* This process is not a rank: every slot that holds a probe gets the real
 * function. */
void sdg_slot_disarm(void);
/* The same in a child made by fork, except for calls that an op can split:
 * capture() refuses those. */
void sdg_slot_disarm_child(void);
/* No section uses the whole view: entries that only the whole view probes get
 * the real function. Entries that allocate memory keep their probe for both
 * views. */
void sdg_slot_narrow(void);
/* No section is about products of matrices: in the whole view their entries get
 * the probe that follows memory; in the shard view their probes pass calls on,
 * which are only looked at while something is known of memory. */
void sdg_slot_leave_products(void);
/* The program tags products itself: their entries get the probes of products
 * from now on. */
void sdg_slot_take_products(void);
/* Set by sdg_slot_leave_products, for calls that already run a probe. */
extern atomic_bool sdg_slot_products_left;
bool sdg_slot_disarmed(void);

#endif
