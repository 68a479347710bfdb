// SPDX-License-Identifier: Apache-2.0
// Prints random operation graphs of all kinds.
//
// usage: graphs SEED COUNT
#include "tests/host/planner/draw.h"
#include "tests/host/planner/print.h"

int main(int argc, char **argv) {
  return planner_print(argc, argv, planner_draw);
}
