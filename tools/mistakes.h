/* SPDX-License-Identifier: Apache-2.0 */
/* Slips of the command line that can be told before anything is done. */
#ifndef SDG_TOOLS_MISTAKES_H
#define SDG_TOOLS_MISTAKES_H

#include <stdbool.h>

#include "tools/command.h"

/* Says on stderr what is wrong with the words of a command, argv[0] being its
 * name, and what to write: an option that there is not, with the nearest; an
 * empty word for a file or a program; options of sundog behind the program.
 * False if nothing is found; the rest is for the command to judge. */
bool mistakes_find(const command_t *command, int argc, char **argv);

#endif
