/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the names of functions out of symbols of C++ (Itanium ABI), without the
 * C++ library. */
#ifndef SDG_SRC_CALL_SYMBOL_H
#define SDG_SRC_CALL_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>

typedef struct sdg_symbol {
  const char *identifier; /* the last one, in the symbol, without its length */
  int identifier_bytes;
  const char *length; /* where its length stands */
  const char *end;    /* behind the name: the types follow */
  bool is_nested;     /* in a namespace or a class */
  bool is_template;   /* template arguments stand behind the identifier */
} sdg_symbol_t;

/* Writes the name with its namespaces, but no arguments of templates:
 * "_ZN3foo3barILi3EEEvPf" becomes "foo::bar". False, with `out` as it was, for
 * what is no symbol of a plain function of C++, and if there is no room. */
bool sdg_symbol_read(const char *symbol, char *out_name, size_t name_bytes,
                     sdg_symbol_t *out);

/* What a symbol tells of a parameter. */
typedef struct sdg_parameter {
  bool is_known;
  bool is_address;
  char kind; /* of the number, or of those at the address: 'i' an integer, 'f'
                floating; 0: it is none, or not known */
  int bytes; /* of such a number */
} sdg_parameter_t;

/* The parameters of the function; returns their number, -1 if the symbol does
 * not tell it or they are more than `room`. */
int sdg_symbol_parameters(const sdg_symbol_t *symbol, int room,
                          sdg_parameter_t *out);

#endif
