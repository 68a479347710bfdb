/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of a captured call of cuDNN by their meaning: a planner asks
 * for BETA and need not know which parameter of the entry that is.
 * interpose/entries.def gives each argument its meaning. Inside rules/ only.
 *
 *   if (sdg_call_scalar(call, SDG_BETA) != 0) ...
 *
 * An argument that the entry does not have is NULL or 0. Each kind of argument
 * has an enumeration of its own, so that the compiler warns of a mistaken
 * one.
 *
 * sdg_rebind_t is the program's call with other tensors and arguments in place
 * of its own. */
#ifndef SDG_RULES_VENDOR_ARGUMENT_H
#define SDG_RULES_VENDOR_ARGUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rules/vendor/args.h"
#include "src/call/call.h"

/* All arguments, one after the other. */
typedef enum sdg_argument {
#define SDG_SCALAR(name)  SDG_ARGUMENT_##name,
#define SDG_POINTER(name) SDG_ARGUMENT_##name,
#define SDG_SIZE(name)    SDG_ARGUMENT_##name,
#define SDG_INT(name)     SDG_ARGUMENT_##name,
#define SDG_NUMBER(name)  SDG_ARGUMENT_##name,
#include "rules/vendor/arguments.def"
  SDG_ARGUMENT_COUNT,
} sdg_argument_t;

/* The same by their C type. */
typedef enum sdg_scalar_argument {
#define SDG_SCALAR(name) SDG_##name = SDG_ARGUMENT_##name,
#include "rules/vendor/arguments.def"
} sdg_scalar_argument_t;
typedef enum sdg_pointer_argument {
#define SDG_POINTER(name) SDG_##name = SDG_ARGUMENT_##name,
#include "rules/vendor/arguments.def"
} sdg_pointer_argument_t;
typedef enum sdg_size_argument {
#define SDG_SIZE(name) SDG_##name = SDG_ARGUMENT_##name,
#include "rules/vendor/arguments.def"
} sdg_size_argument_t;
typedef enum sdg_int_argument {
#define SDG_INT(name) SDG_##name = SDG_ARGUMENT_##name,
#include "rules/vendor/arguments.def"
} sdg_int_argument_t;
typedef enum sdg_number_argument {
#define SDG_NUMBER(name) SDG_##name = SDG_ARGUMENT_##name,
#include "rules/vendor/arguments.def"
} sdg_number_argument_t;

/* Where an entry has its arguments: offsets in bytes into its struct of
 * arguments, plus 1. 0: the entry has no such argument, or no tensor of that
 * role. If several tensors have the role: the first one's. interpose/generate
 * makes the rows. */
typedef struct sdg_argument_row {
  uint16_t argument[SDG_ARGUMENT_COUNT];
  uint16_t descriptor[SDG_ROLE_COUNT], data[SDG_ROLE_COUNT];
  int operands; /* of a call in which no descriptor is NULL */
} sdg_argument_row_t;
/* The row of an entry. It is empty for an entry that is not handled by an op of
 * cuDNN's, and for sundog's own entries (negative). */
const sdg_argument_row_t *sdg_argument_row(int entry);

/* Whether the call has all tensors of its entry. */
bool sdg_call_is_complete(const sdg_call_t *call);
/* Whether the call's entry has the argument. */
bool sdg_call_has(const sdg_call_t *call, sdg_argument_t which);
/* The value of a scalar, 0 if its pointer is NULL; and that pointer. */
double sdg_call_scalar(const sdg_call_t *call, sdg_scalar_argument_t which);
const void *sdg_call_scalar_at(const sdg_call_t *call,
                               sdg_scalar_argument_t which);
/* Whether a scalar that the entry has is NULL. */
bool sdg_call_lacks_scalar(const sdg_call_t *call);
/* Reads a scalar that has the type of the call's scalars: double if its tensors
 * are double, else float. */
double sdg_call_scalar_value(const sdg_call_t *call, const void *scalar);
/* The values of all scalars and numbers that the call has; at most
 * SDG_CALL_SCALARS. Returns how many. */
enum { SDG_CALL_SCALARS = 6 };
int sdg_call_scalars(const sdg_call_t *call, double *out);
void *sdg_call_pointer(const sdg_call_t *call, sdg_pointer_argument_t which);
size_t sdg_call_size(const sdg_call_t *call, sdg_size_argument_t which);
int sdg_call_int(const sdg_call_t *call, sdg_int_argument_t which);
double sdg_call_number(const sdg_call_t *call, sdg_number_argument_t which);
/* A tensor's descriptor and memory as the vendor's function gets them. Those of
 * call->operand differ if another tensor replaces the operand: the descriptor
 * there remains the program's. */
void *sdg_call_descriptor(const sdg_call_t *call, sdg_role_t role);
void *sdg_call_data(const sdg_call_t *call, sdg_role_t role);

/* The bytes of the entry's struct of arguments; 0 if cuDNN does not have it. */
size_t sdg_invoke_bytes(int entry);
/* Calls the vendor's function, and returns its status;
 * CUDNN_STATUS_NOT_SUPPORTED for an op or a query that entries.def does not say
 * is "called". */
int sdg_invoke(int entry, const sdg_args_t *args);

/* ---- the call with other arguments --------------------------------------- */

/* A copy of a call's arguments. The call must live longer than the copy. */
typedef struct sdg_rebind {
  const sdg_call_t *call;
  sdg_args_t args;
} sdg_rebind_t;

void sdg_rebind_init(const sdg_call_t *call, sdg_rebind_t *out);
/* Each replaces one argument, or does nothing if the entry has no such
 * argument. _put: the descriptor and the memory of operand `index`; _tensor:
 * the same by role. */
void sdg_rebind_put(sdg_rebind_t *rebind, int index, const void *descriptor,
                    void *data);
void sdg_rebind_tensor(sdg_rebind_t *rebind, sdg_role_t role,
                       const void *descriptor, const void *data);
void sdg_rebind_scalar(sdg_rebind_t *rebind, sdg_scalar_argument_t which,
                       const void *scalar);
void sdg_rebind_pointer(sdg_rebind_t *rebind, sdg_pointer_argument_t which,
                        const void *pointer);
void sdg_rebind_size(sdg_rebind_t *rebind, sdg_size_argument_t which,
                     size_t size);
void sdg_rebind_int(sdg_rebind_t *rebind, sdg_int_argument_t which, int value);
/* Calls the real function; returns the vendor's status. */
int sdg_rebind_invoke(const sdg_rebind_t *rebind);

#endif
