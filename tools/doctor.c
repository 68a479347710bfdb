// SPDX-License-Identifier: Apache-2.0
// `sundog doctor`: checks this machine, and prints a remedy for each fault.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/checkup/checkup.h"
#include "tools/command.h"
#include "tools/launch/folder.h"
#include "tools/launch/launch.h"

static error_t doctor_parse(int key, char *argument, struct argp_state *state) {
  (void)argument;
  launch_t *launch = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = launch;
    return 0;
  case ARGP_KEY_ARG:
    launch_take_program(launch, state);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_child doctor_children[] = {{&launch_argp, 0, NULL, 0},
                                                    {0}};
const struct argp doctor_argp = {
    .parser = doctor_parse,
    .children = doctor_children,
    .args_doc = "[-- PROGRAM]",
    .doc = "Checks this machine as `sundog run` with the same options would "
           "find it: device, NVIDIA's libraries and their versions, "
           "preloading, limits, launcher. With PROGRAM, also checks whether "
           "sundog can see its calls.\vEach line says ok, warn or fail and, "
           "unless ok, what to do. The exit status is 1 if a line says fail."};

static void device_check(checkup_t *checkup, const launch_t *launch,
                         bool chosen) {
  int gpus = launch_gpus();
  char driver[256] = "";
  FILE *file = fopen("/proc/driver/nvidia/version", "re");
  if (file && fgets(driver, sizeof driver, file))
    driver[strcspn(driver, "\n")] = '\0';
  if (file)
    fclose(file);
  if (launch->device == LAUNCH_HOST) {
    checkup_say(checkup, CHECKUP_OK, "device", "host, %s",
                chosen ? "by --device"
                       : "since this machine has no NVIDIA driver");
    return;
  }
  checkup_say(checkup, CHECKUP_OK, "device", "cuda, %s; GPUs: %d",
              chosen ? "by --device" : "since there is an NVIDIA driver", gpus);
  if (*driver)
    checkup_say(checkup, CHECKUP_OK, "driver", "%s", driver);
  if (access("/dev/nvidiactl", F_OK) == 0 &&
      access("/dev/nvidiactl", R_OK | W_OK) != 0) {
    checkup_say(checkup, CHECKUP_FAIL, "driver",
                "this user may not open /dev/nvidiactl");
    checkup_remedy("join the group that owns it (video or render), or give "
                   "the container --gpus all");
  }
}

int command_doctor(int argc, char **argv) {
  launch_t launch = {.device = LAUNCH_AUTO};
  checkup_t checkup = {.count = {0}};
  char folder[PATH_MAX] = "";
  argp_parse(&doctor_argp, argc, argv, ARGP_IN_ORDER, NULL, &launch);
  bool chosen = launch.device != LAUNCH_AUTO;
  // Keeps lines on standard output and standard error in order.
  setvbuf(stdout, NULL, _IOLBF, 0);
  puts("sundog " SUNDOG_VERSION);
  if (launch_prepare(&launch) != SDG_OK) {
    checkup_say(&checkup, CHECKUP_FAIL, "options and files", "%s",
                sdg_last_error());
    checkup_remedy("`sundog explain` with the code prints cause and remedy");
  } else {
    checkup_say(&checkup, CHECKUP_OK, "options", "%s",
                launch.asked ? "a split is asked for"
                             : "no split is asked for");
    device_check(&checkup, &launch, chosen);
    checkup_say(&checkup, *launch.install.host ? CHECKUP_OK : CHECKUP_WARN,
                "host device", "%s",
                *launch.install.host ? launch.install.host : "not installed");
    if (folder_create(folder, sizeof folder) == SDG_OK &&
        launch_preload(&launch, folder) == SDG_OK)
      checkup_libraries(&checkup, launch.install.helper,
                        launch.device == LAUNCH_CUDA);
    if (*folder)
      folder_remove(folder);
  }
  checkup_machine(&checkup, launch.device == LAUNCH_CUDA);
  checkup_ranks(&checkup, launch.install.pmix);
  if (launch.program)
    checkup_program(&checkup, launch.program[0]);
  printf("%d ok, %d warn, %d fail\n", checkup.count[CHECKUP_OK],
         checkup.count[CHECKUP_WARN], checkup.count[CHECKUP_FAIL]);
  return checkup.count[CHECKUP_FAIL] ? COMMAND_DIFFERENT : COMMAND_OK;
}
