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
#include "src/base/vendor.h"
#include "src/call/call.h"
#include "src/call/memory_access.h"

enum { SDG_ENTRY_NOWHERE = SDG_NOWHERE };

/* An operand of a captured entry; offsets into its struct sdg_args_. */
typedef struct sdg_entry_operand {
  sdg_role_t role;
  sdg_operand_kind_t kind;
  bool is_output;
  uint16_t descriptor;
  uint16_t data; /* SDG_ENTRY_NOWHERE: no pointer to it */
} sdg_entry_operand_t;

/* A pointer through which an entry reads or writes; offsets into its struct
 * sdg_args_. Sizes are size_t members, SDG_ENTRY_NOWHERE where not said. */
typedef struct sdg_entry_access {
  uint16_t pointer;
  bool reads, writes;
  uint16_t width, pitch, height;
} sdg_entry_access_t;

/* How an entry says that its library is not there. */
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
  void *stub;  /* what libsundog.so exports */
  void *probe; /* NULL: no op can reach it */
  void *whole; /* the probe in the whole view; NULL: the same */
  void *shard; /* the probe in the shard view; NULL: `probe` */
  /* Reads the struct sdg_args_ of a call on vectors; NULL: it is none. */
  void (*vector)(const void *args, sdg_vector_t *out);
  /* Makes such a call that gives a value, of other vectors
   * (sdg_vector_call_t); NULL: it gives none. */
  int (*vector_call)(const void *args, const sdg_vector_t *vector);
  bool memory; /* allocates or frees: that probe is of the shard view, too */
  /* Reads the struct sdg_args_ of a product of matrices; NULL: it is none. Its
   * probe stays only where the rules are about products. */
  void (*product)(const void *args, sdg_gemm_t *out);
  sdg_library_t library;
  sdg_family_t family;
  sdg_refusal_t refusal;
  bool is_query;
  /* Offsets, SDG_ENTRY_NOWHERE if there is none. */
  uint16_t handle, op, stream;
  bool everything; /* may touch any device memory */
  bool per_thread; /* its default stream is the thread's */
  int operands;
  sdg_entry_operand_t operand[SDG_OPERANDS_MAX];
  int accesses;
  const sdg_entry_access_t *access;
} sdg_entry_t;
extern const sdg_entry_t sdg_entry[SDG_ENTRY_COUNT];
extern const char *const sdg_entry_name[SDG_ENTRY_COUNT];

/* The number of the entry of this name, -1 if it is none. Calls no function of
 * libc. */
int sdg_entry_find(const char *name);

/* What the stubs jump to, and the real functions that the probes jump to.
 * Neither is ever NULL: until an entry's first call both hold a trampoline
 * that resolves it, as lazy binding would. */
extern _Atomic(void *) sdg_slot[SDG_ENTRY_COUNT];
extern _Atomic(void *) sdg_real[SDG_ENTRY_COUNT];

/* Called by the trampoline: returns where to jump. A library that is not there
 * (yet) leaves the slot unresolved and answers with the entry's refusal. */
void *sdg_slot_resolve(unsigned entry);

/* This process is no rank: every slot that holds a probe gets the real
 * function. */
void sdg_slot_disarm(void);
/* The same in a child made by fork, but for the calls that an op can split,
 * which capture() has to look at. */
void sdg_slot_disarm_child(void);
/* It is known that no section is of the whole view: entries that only that one
 * looks at get the real function; what memory there is both want to know. */
void sdg_slot_narrow(void);
/* It is known that no section is about products of matrices: they are as the
 * view has other functions of cuBLAS. */
void sdg_slot_leave_products(void);
/* The program says of products itself how they are split: they are looked at,
 * from now on. */
void sdg_slot_take_products(void);
/* Set by the first, for calls that are on their way to a probe. */
extern atomic_bool sdg_slot_products_left;
bool sdg_slot_disarmed(void);

#endif
