// SPDX-License-Identifier: Apache-2.0
// Names out of symbols of C++.
#include "src/call/symbol.h"

#include <string.h>

#include "tests/unit/harness.h"

START_TEST(a_name_has_its_namespaces_and_no_arguments) {
  static const struct {
    const char *symbol, *name, *end;
    bool is_nested, is_template;
  } rows[] = {
      {"_Z4statPf", "stat", "Pf", false, false},
      {"_Z2ttIdEvPKT_PS0_i", "tt", "vPKT_PS0_i", false, true},
      {"_ZN3foo3barILi3EEEvPf", "foo::bar", "vPf", true, true},
      {"_ZN3foo2stENS_1AEPf", "foo::st", "NS_1AEPf", true, false},
      {"_ZN3foo3barILb1ELi3E4EnumLj4EEEvPf", "foo::bar", "vPf", true, true},
      {"_ZN1aIfE1fILi1EEEvv", "a::f", "vv", true, true},
      {"_Z1fIN1a1bISt4pairIifEEEEvT_", "f", "vT_", false, true},
      {"_ZSt4swapIiEvRT_S1_", "std::swap", "vRT_S1_", false, true},
      {"_ZL4filePf", "file", "Pf", false, false},
      {"_ZN36_GLOBAL__N__6095e97a_4_a_cu_e69fb6ca4anonEPf",
       "(anonymous namespace)::anon", "Pf", true, false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char name[64];
    sdg_symbol_t parts;
    ck_assert_msg(sdg_symbol_read(rows[i].symbol, name, sizeof name, &parts),
                  "%s", rows[i].symbol);
    ck_assert_str_eq(name, rows[i].name);
    ck_assert_str_eq(parts.end, rows[i].end);
    ck_assert_int_eq(parts.is_nested, rows[i].is_nested);
    ck_assert_int_eq(parts.is_template, rows[i].is_template);
    size_t length = (size_t)parts.identifier_bytes;
    ck_assert_mem_eq(name + strlen(name) - length, parts.identifier, length);
    ck_assert_int_eq(atoi(parts.length), parts.identifier_bytes);
  }
}
END_TEST

START_TEST(what_is_no_name_is_left) {
  static const char *const rows[] = {
      "",        "_",           "_Z",         "plain",           "_Z9999foo",
      "_ZN3foo", "_ZN3fooplEv", "_Z3fooI",    "_Z3fooIS",        "_ZN",
      "_ZNE",    "_Z3fooIL",    "_Z3fooILi3", "_ZN3foo3barILi3E"};
  char name[64] = "as it was";
  sdg_symbol_t parts;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ck_assert_msg(!sdg_symbol_read(rows[i], name, sizeof name, &parts), "%s",
                  rows[i]);
    ck_assert_str_eq(name, "as it was");
  }
  ck_assert(!sdg_symbol_read("_Z4statPf", name, 4, &parts));
  ck_assert(sdg_symbol_read("_Z4statPf", name, 5, &parts));
}
END_TEST

// Symbols cut short or with a character replaced: a name or none, no more.
START_TEST(changed_symbols_are_read_within_their_bounds) {
  static const char *const right[] = {
      "_ZN3foo3barILb1ELi3E4EnumLj4EN1a1bEEEvPf", "_Z2ttIdEvPKT_PS0_i",
      "_Z1fIN1a1bISt4pairIifEEEEvT_"};
  for (int r = 0; r < 3; r++) {
    size_t length = strlen(right[r]);
    for (size_t at = 0; at <= length; at++)
      for (int c = 0; c < 128; c++) {
        char *symbol = strdup(right[r]), name[1024];
        sdg_symbol_t parts;
        symbol[at] = (char)c; // 0 cuts
        if (at < length && sdg_symbol_read(symbol, name, sizeof name, &parts)) {
          sdg_parameter_t parameter[6];
          REQUIRE(parts.end >= symbol && parts.end <= symbol + strlen(symbol));
          REQUIRE(sdg_symbol_parameters(&parts, 6, parameter) <= 6);
        }
        free(symbol);
      }
  }
}
END_TEST

// "P4f": the address of numbers of 4 bytes that are floating; "?": not known.
static void described(const char *symbol, char *out) {
  char name[64];
  sdg_symbol_t parts;
  sdg_parameter_t parameter[7];
  *out = '\0';
  ck_assert(sdg_symbol_read(symbol, name, sizeof name, &parts));
  int count = sdg_symbol_parameters(&parts, 7, parameter);
  if (count < 0)
    strcpy(out, "-");
  for (int i = 0; i < count; i++) {
    const sdg_parameter_t *p = &parameter[i];
    char item[8];
    if (!p->is_known)
      strcpy(item, "?");
    else
      snprintf(item, sizeof item, "%s%.*s%c", p->is_address ? "P" : "",
               p->kind ? 1 : 0, &"012345678"[p->bytes],
               p -> kind ? p -> kind : '*');
    strcat(out, i ? " " : "");
    strcat(out, item);
  }
}

START_TEST(parameters_are_counted_and_told) {
  static const struct {
    const char *symbol, *parameters;
  } rows[] = {
      {"_Z1fv", ""},
      {"_Z1fPKfPfiidlb", "P4f P4f 4i 4i 8f 8i 1i"},
      {"_Z1fPKfS0_Pd", "P4f ? P8f"},
      {"_Z2ttIdEvPKT_PS0_i", "P8f P* 4i"},
      {"_Z1fIfLi3EdEvPT_T1_PKT1_", "P4f 8f P8f"},
      {"_Z1fILi3EfEvPT_PT0_", "P* P4f"},
      {"_ZN3foo2stENS_1AEPf", "? P4f"},
      {"_Z1fSt4pairIifEPS_IdE", "? P*"},
      {"_Z1fP7double2PPfPv", "P* P* P*"},
      {"_Z1fPFvicEi", "P* 4i"},
      {"_Z1fIiEvT_", "4i"},
      {"_Z1fiiiiiii", "4i 4i 4i 4i 4i 4i 4i"},
      {"_Z1fiiiiiiii", "-"},
      {"_Z1fRA3_f", "-"},
      {"_Z1fiz", "4i ?"},
      {"_Z1f", "-"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[128];
    described(rows[i].symbol, text);
    ck_assert_msg(strcmp(text, rows[i].parameters) == 0, "%s: %s",
                  rows[i].symbol, text);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("symbol");
  TCase *cases = tcase_create("symbol");
  tcase_add_test(cases, a_name_has_its_namespaces_and_no_arguments);
  tcase_add_test(cases, what_is_no_name_is_left);
  tcase_add_test(cases, parameters_are_counted_and_told);
  tcase_add_test(cases, changed_symbols_are_read_within_their_bounds);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
