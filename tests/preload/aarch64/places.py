#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a C program for aarch64: calls of random prototypes, of which
interpose/function/probe.c has to find the sizes where the compiler puts them.

usage: places.py FILE.c [SEED]
"""
import random
import sys

draw = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 16)
FUNCTIONS = 100
INTEGERS = {'char': ('u', 1), 'short': ('i', 2), 'int': ('i', 4),
            'long': ('i', 8), 'unsigned char': ('u', 1), 'unsigned': ('u', 4)}
FLOATS = {'float': ('f', 4), 'double': ('f', 8)}
NUMBERS = {**INTEGERS, **FLOATS}

HEAD = '''#include <stdio.h>
#include <string.h>
#include "interpose/function/probe.h"
static sdg_function_t function;
static long given[SDG_ARGUMENTS_MAX];
static int sizes, wrong;
static void number(int a, int m, char kind, int bytes) {
  function.argument[a].number[m] = (sdg_number_t){kind, bytes};
}
__attribute__((used)) void look(const char *saved) {
  sdg_probe_layout_t layout;
  void *value[SDG_ARGUMENTS_MAX];
  sdg_probe_layout(&function, &layout);
  sdg_probe_values(&layout, saved, value);
  sizes += layout.sizes;
  for (int i = 0; i < layout.sizes; i++) {
    int a = layout.size[i].argument;
    long found = 0;
    memcpy(&found, value[a], (size_t)function.argument[a].number[0].bytes);
    wrong += found != given[a];
  }
}
/* Saves registers as sdg_resolve does. */
#define CALLED(name) __asm__( \\
  ".text\\n.globl " #name "\\n" #name ":\\n" \\
  "stp x29, x30, [sp, #-224]!\\nstp x0, x1, [sp, #16]\\n" \\
  "stp x2, x3, [sp, #32]\\nstp x4, x5, [sp, #48]\\nstp x6, x7, [sp, #64]\\n" \\
  "mov x0, sp\\nbl look\\nldp x29, x30, [sp], #224\\nret\\n");
'''


def called(number):
    """Returns the text of one function's declaration, and of its call."""
    declared, values, lines, structs = [], [], [], ''
    for a in range(draw.randint(1, 24)):
        kind, members = draw.random(), 0
        types = [draw.choice(list(INTEGERS if kind < 0.4 else NUMBERS))]
        name = types[0]
        if kind > 0.7:
            pool = draw.choice([INTEGERS, FLOATS, NUMBERS, ['float'],
                                ['double']])
            types = [draw.choice(list(pool))
                     for _ in range(draw.randint(1, 8))]
            members, name = len(types), f'struct s{number}_{a}'
            structs += name + ' {' + ''.join(
                f'{t} m{m};' for m, t in enumerate(types)) + '};\n'
        lines += [f'number({a}, {m}, \'{NUMBERS[t][0]}\', {NUMBERS[t][1]});'
                  for m, t in enumerate(types)]
        lines += [f'function.argument[{a}].members = {members};',
                  f'function.argument[{a}].tensor = -1;']
        value = draw.randint(1, 99)
        if kind < 0.4:
            lines += [f'function.argument[{a}].is_size = true;',
                      f'given[{a}] = {value};']
        declared.append(name)
        values.append(f'({name}){{{", ".join([str(value)] * len(types))}}}')
    return (f'{structs}void called_{number}({", ".join(declared)});\n'
            f'CALLED(called_{number})\n'
            f'static void call_{number}(void) {{\n'
            '  function = (sdg_function_t){.arguments = '
            f'{len(declared)}}};\n  ' + '\n  '.join(lines) +
            f'\n  called_{number}({", ".join(values)});\n}}\n')


with open(sys.argv[1], 'w') as file:
    file.write(HEAD + ''.join(called(n) for n in range(FUNCTIONS)))
    file.write('int main(void) {\n' + ''.join(
        f'  call_{n}();\n' for n in range(FUNCTIONS)) +
        '  printf("%d sizes of functions, %d wrong\\n", sizes, wrong);\n'
        '  return wrong > 0 || sizes < 100;\n}\n')
