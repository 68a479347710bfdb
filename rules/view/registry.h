/* SPDX-License-Identifier: Apache-2.0 */
/* Judges captured calls: which op and section apply; agree, plan, run. */
#ifndef SDG_RULES_VIEW_REGISTRY_H
#define SDG_RULES_VIEW_REGISTRY_H

#include "rules/vendor/vector.h"
#include "rules/view/shard/replay.h"
#include "src/base/status.h"
#include "src/call/call.h"
#include "src/call/memory_access.h"

typedef enum sdg_verdict {
  SDG_VERDICT_PASS, /* untagged: give the program's call to the real function */
  SDG_VERDICT_DONE, /* carried out or refused: return call->result */
} sdg_verdict_t;

/* Judges one call of the program, and carries it out if it is tagged.
 * Collective if the call takes part in an agreement: then all ranks make the
 * same calls in the same order. On DONE call->result is the status to return
 * (cudnnStatus_t or cublasStatus_t). */
sdg_verdict_t sdg_registry_judge(sdg_call_t *call);

/* As sdg_registry_judge() for a call of sundog.h, which has no vendor's
 * function behind it. *out_done is false if the call is untagged. */
sdg_status_t sdg_registry_carry_out(sdg_call_t *call,
                                    bool *out_done) SDG_MUST_CHECK;

/* True if this version can split the call: it has an op for the entry. */
bool sdg_registry_knows(const sdg_call_t *call);

/* As sdg_registry_judge() for an entry whose tensors sundog cannot see (a graph
 * of ops, fused ops). Refused with SDG_E_OPAQUE if a section or a tag splits
 * anything, because the tensors may be in pieces. `space`: the entry generates
 * coordinates; refused with SDG_E_COORDINATES if D, H or W may be split. In the
 * whole view the call uses the memory that `memory` lists. */
sdg_verdict_t sdg_registry_opaque(const char *entry_name, bool space,
                                  const sdg_memory_access_t *memory,
                                  int *out_result);

/* Whole view: to be called before a call that no op judges uses device memory.
 * Not 0: the call is refused, sdg_last_error() says why. */
int sdg_registry_access(const sdg_memory_access_t *memory);
/* Whole view: to be called after a call has returned a value of so many bytes.
 * If the value is in host memory, it is replaced by the first rank's. Not 0: as
 * above. */
int sdg_registry_result(const char *entry_name, void *result, size_t bytes);
/* Whole view: computes a value of vectors (a norm, a sum, a dot product). DONE:
 * it was computed from pieces (rules/view/whole/value.h), or refused;
 * *out_result is the status to return. PASS: every rank has all elements up to
 * date, and the real function is to be called with them. */
sdg_verdict_t sdg_registry_make_value(const sdg_memory_access_t *memory,
                                      const sdg_vector_t *vector,
                                      const sdg_vector_call_t *call,
                                      int *out_result);
/* Shard view: to be called before a value is computed of vectors
 * (rules/view/shard/outside.h). Not 0: as above. */
int sdg_registry_value(const sdg_vector_t *vector);
/* To be called after it. `refused`: the vendor's library refused the call. Not
 * 0: as above. */
int sdg_registry_value_made(const sdg_vector_t *vector, bool refused);
/* To be called before the program resets the device: forgets the program's
 * memory there. True if sundog has memory or communicators there: then call
 * sdg_registry_reset as soon as the device is idle, before the reset. */
bool sdg_registry_reset_due(void);
void sdg_registry_reset(void);
/* Whole view: to be called when the program begins to use functions that are
 * not intercepted. Not 0: as above. */
int sdg_registry_unseen(const char *entry_name);
/* Whole view: to be called after a call has measured algorithms. The results
 * are replaced by the first rank's; see sdg_root_broadcast_measured. Not 0: as
 * above. */
int sdg_registry_measured(const char *entry_name, int *io_count, void *measured,
                          size_t each, int room);
/* Whether products of matrices have to be judged: a split was asked for, and a
 * section is about products (unknown until the rules are read) or the program
 * has tagged memory; or calls are recorded, or their outputs are kept. */
bool sdg_registry_may_multiply(void);

/* Begin and end enclose a function of the runtime that concerns graphs
 * (rules/view/shard/replay.h). True: it is refused, or has failed. */
bool sdg_registry_graph_begin(sdg_graph_use_t *use);
bool sdg_registry_graph_end(const sdg_graph_use_t *use, bool good);

/* True if calls have to be captured, because an option asks for a split, for a
 * record of the calls, or for their outputs. Constant after the constructor. */
bool sdg_registry_watches(void);

/* At the end of the process: writes the report and leaves the job. No CUDA. */
void sdg_registry_finish(void);

#endif
