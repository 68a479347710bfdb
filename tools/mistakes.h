/* SPDX-License-Identifier: Apache-2.0 */
/* Finds mistakes in a command line before the command does anything. */
#ifndef SDG_TOOLS_MISTAKES_H
#define SDG_TOOLS_MISTAKES_H

#include <stdbool.h>

#include "tools/command.h"

/* Prints the first mistake in a command line (argv[0]: the command's name) on
 * stderr, and what to write instead: an unknown option, with the nearest one;
 * an empty word for a file or a program; options of sundog after the program.
 * Returns false if it finds no mistake; the command itself checks the rest. */
bool mistakes_find(const command_t *command, int argc, char **argv);

#endif
