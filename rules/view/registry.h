/* SPDX-License-Identifier: Apache-2.0 */
/* Judges captured calls: which op and section apply; agree, plan, run. */
#ifndef SDG_RULES_VIEW_REGISTRY_H
#define SDG_RULES_VIEW_REGISTRY_H

#include "rules/vendor/vector.h"
#include "src/base/status.h"
#include "src/call/call.h"
#include "src/call/memory_access.h"

typedef enum sdg_verdict {
  SDG_VERDICT_PASS, /* not ours: give the program's call to the real function */
  SDG_VERDICT_DONE, /* carried out or refused: return call->result */
} sdg_verdict_t;

/* Judges one call of the program and carries it out where it is tagged.
 * Collective where it takes part in an agreement (DESIGN section 4): all ranks
 * make the same calls in the same order. On DONE call->result is the
 * cudnnStatus_t to return. */
sdg_verdict_t sdg_registry_judge(sdg_call_t *call);

/* As sdg_registry_judge() for a call of sundog's own, which no vendor's
 * function could carry out; *out_done is false where it is untagged. */
sdg_status_t sdg_registry_carry_out(sdg_call_t *call,
                                    bool *out_done) SDG_MUST_CHECK;

/* True if this version can split the call: it has an op for the entry. */
bool sdg_registry_knows(const sdg_call_t *call);

/* As sdg_registry_judge() for an entry whose tensors sundog cannot see (a graph
 * of ops, fused ops): refused with SDG_E_OPAQUE where a section, or a tag,
 * splits anything: what is in pieces may be among them. `space`: a generator of
 * coordinates, refused with SDG_E_COORDINATES where D, H or W may be split. In
 * the whole view it touches whatever `touch` says. */
sdg_verdict_t sdg_registry_opaque(const char *entry_name, bool space,
                                  const sdg_memory_access_t *memory,
                                  int *out_result);

/* Whole view: a call that no op judges is about to touch device memory. Not
 * 0: it is refused, sdg_last_error() says why. */
int sdg_registry_access(const sdg_memory_access_t *memory);
/* Whole view: a call has returned a value of so many bytes, which becomes the
 * first rank's if it is in host memory. Not 0: as above. */
int sdg_registry_result(const char *entry_name, void *result, size_t bytes);
/* Whole view: a value is about to be made of vectors. DONE: it was made, of
 * pieces (rules/view/whole/value.h), or refused; *out_result is the status to
 * return. PASS: every rank makes it of all elements, which are there. */
sdg_verdict_t sdg_registry_make_value(const sdg_memory_access_t *memory,
                                      const sdg_vector_t *vector,
                                      const sdg_vector_call_t *call,
                                      int *out_result);
/* Shard view: a value is about to be made of vectors
 * (rules/view/shard/outside.h). Not 0: as above. */
int sdg_registry_value(const sdg_vector_t *vector);
/* It was made, or the vendor's library has `refused` the call. */
int sdg_registry_value_made(const sdg_vector_t *vector, bool refused);
/* The program is about to reset the device: what the program had there is
 * forgotten. True if sundog has something there, too: then, when the device has
 * done its work, sdg_registry_reset. */
bool sdg_registry_reset_due(void);
void sdg_registry_reset(void);
/* Whole view: the program begins to use functions that are not intercepted. Not
 * 0: as above. */
int sdg_registry_unseen(const char *entry_name);
/* Whole view: a call has measured algorithms, which becomes what the first rank
 * measured; see sdg_root_broadcast_measured. Not 0: as above. */
int sdg_registry_measured(const char *entry_name, int *io_count, void *measured,
                          size_t each, int room);
/* Whether products of matrices have to be looked at: a split was asked for, and
 * the rules, if they are read, have a section about them, or the program has
 * tagged memory; or calls are recorded, or their outputs kept. */
bool sdg_registry_may_multiply(void);

/* True if calls have to be captured: a split is asked for, a record of the
 * calls, or their outputs. Constant after the constructor. */
bool sdg_registry_watches(void);

/* At the end of the process: writes the report and leaves the job. No CUDA. */
void sdg_registry_finish(void);

#endif
