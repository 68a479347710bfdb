// SPDX-License-Identifier: Apache-2.0
// Prepares the environment of a rank's program.
#include "tools/launch/launch.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rules/file/file.h"
#include "rules/file/function/function.h"
#include "src/base/options.h"
#include "tools/program/functions.h"
#include "tools/program/needs.h"
#include "tools/program/setting.h"

enum {
  KEY_DEVICE = 0x100,
  KEY_BIND,
  KEY_RULES,
  KEY_SPLIT,
  KEY_MESH,
  KEY_VIEW,
  KEY_PARTS,
  KEY_STRATEGY,
  KEY_WRAP,
  KEY_WINDOW,
  KEY_PIECE_VALUES,
  KEY_TIMEOUT,
  KEY_CHECK,
  KEY_TRACE,
  KEY_RECORD,
  KEY_RECORD_MAX,
};

static const struct argp_option launch_options[] = {
    {"device", KEY_DEVICE, "auto|host|cuda", 0,
     "cuda: NVIDIA's GPUs; host: the CPU, with sundog's own libraries in place "
     "of NVIDIA's; auto (default): cuda if a driver is installed",
     0},
    {"bind", KEY_BIND, "rank|none", 0,
     "rank (default): each rank's program sees one GPU, that of its local "
     "rank, as device 0; none: it sees all, and selects its own by "
     "cudaSetDevice",
     0},
    {"rules", KEY_RULES, "FILE", 0, "Which tensors are split, and how", 0},
    {"split", KEY_SPLIT, "SPLIT", 0,
     "In place of a rules file: H, H:y,W:x with --mesh, tags if the program "
     "says what is split (sundog.h), or replicated if every rank does all",
     0},
    {"mesh", KEY_MESH, "MESH", 0, "Axes of ranks, as in data=2,y=4", 0},
    {"view", KEY_VIEW, "shard|whole", 0,
     "What the program's descriptors describe: the rank's slab, or the whole "
     "tensor",
     0},
    {"parts", KEY_PARTS, "PARTS", 0,
     "agree (default), even, even/32, chunk, or sizes: 300,300,212,212", 0},
    {"strategy", KEY_STRATEGY,
     "auto|repair|extend|adjoint|halo|heads|gather|ring", 0,
     "How windows at inner borders, and attention, are computed", 0},
    {"wrap", KEY_WRAP, "DIMS", 0, "Periodic dimensions, as in 'H W'", 0},
    {"window", KEY_WINDOW, "LEFT,RIGHT|global|local", 0,
     "Which keys a query of attention sees whose sequence is in pieces: so "
     "many "
     "before and after it, all, or those of its piece; global or local also of "
     "pooling windows that fill every piece",
     0},
    {"piece-values", KEY_PIECE_VALUES, "error|local|global", 0,
     "The result of cuBLAS's norms, sums and products of vectors in pieces", 0},
    {"timeout", KEY_TIMEOUT, "SECONDS", 0,
     "How long to wait for another rank (600)", 0},
    {"check", KEY_CHECK, NULL, 0, "Compare every tagged call between the ranks",
     0},
    {"trace", KEY_TRACE, "FILE", 0, "Write what each rank does; %r is the rank",
     0},
    {"record", KEY_RECORD, "FOLDER", 0,
     "Write there what becomes of each tagged call, for `sundog explain`; the "
     "folder is made if needed",
     0},
    {"record-max", KEY_RECORD_MAX, "MB", 0,
     "The most megabytes that a rank writes there of calls, and again of their "
     "times (500); later calls are counted only",
     0},
    {0},
};

static void option_set(struct argp_state *state, const char *variable,
                       const char *value) {
  if (setting_make(variable, value, SDG_ORIGIN_ARGUMENT) != SDG_OK)
    argp_failure(state, argp_err_exit_status, 0, "out of memory");
}

// Makes the path absolute, because a program may change its folder.
static void file_set(struct argp_state *state, const char *variable,
                     const char *path) {
  char *absolute = realpath(path, NULL);
  option_set(state, variable, absolute ? absolute : path);
  free(absolute);
}

static void trace_set(struct argp_state *state, const char *path) {
  char *folder = *path == '/' ? NULL : realpath(".", NULL), *absolute = NULL;
  if (folder && asprintf(&absolute, "%s/%s", folder, path) < 0)
    absolute = NULL;
  option_set(state, "SUNDOG_TRACE", absolute ? absolute : path);
  free(absolute);
  free(folder);
}

bool launch_device_parse(const char *word, launch_device_t *out_device) {
  static const char *const words[] = {"auto", "host", "cuda"};
  for (int i = 0; i < 3; i++)
    if (strcmp(word, words[i]) == 0) {
      *out_device = (launch_device_t)i;
      return true;
    }
  return false;
}

static error_t launch_parse(int key, char *argument, struct argp_state *state) {
  launch_t *launch = state->input;
  switch (key) {
  case KEY_DEVICE:
    if (!launch_device_parse(argument, &launch->device))
      argp_error(state, "--device takes auto, host or cuda, not '%s'",
                 argument);
    return 0;
  case KEY_BIND:
    launch->sees_all = strcmp(argument, "none") == 0;
    if (!launch->sees_all && strcmp(argument, "rank") != 0)
      argp_error(state, "--bind takes rank or none, not '%s'", argument);
    return 0;
  case KEY_RULES:
    file_set(state, "SUNDOG_RULES", argument);
    return 0;
  case KEY_SPLIT:
    option_set(state, "SUNDOG_SPLIT", argument);
    return 0;
  case KEY_MESH:
    option_set(state, "SUNDOG_MESH", argument);
    return 0;
  case KEY_VIEW:
    option_set(state, "SUNDOG_VIEW", argument);
    return 0;
  case KEY_PARTS:
    option_set(state, "SUNDOG_PARTS", argument);
    return 0;
  case KEY_STRATEGY:
    option_set(state, "SUNDOG_STRATEGY", argument);
    return 0;
  case KEY_WRAP:
    option_set(state, "SUNDOG_WRAP", argument);
    return 0;
  case KEY_WINDOW:
    option_set(state, "SUNDOG_WINDOW", argument);
    return 0;
  case KEY_PIECE_VALUES:
    option_set(state, "SUNDOG_PIECE_VALUES", argument);
    return 0;
  case KEY_TIMEOUT:
    option_set(state, "SUNDOG_TIMEOUT", argument);
    return 0;
  case KEY_CHECK:
    option_set(state, "SUNDOG_CHECK", "yes");
    return 0;
  case KEY_TRACE:
    trace_set(state, argument);
    return 0;
  case KEY_RECORD_MAX:
    option_set(state, "SUNDOG_RECORD_MAX", argument);
    return 0;
  case KEY_RECORD:
    if (mkdir(argument, 0700) != 0 && errno != EEXIST)
      argp_failure(state, argp_err_exit_status, errno, "%s", argument);
    file_set(state, "SUNDOG_RECORD", argument);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

const struct argp launch_argp = {.options = launch_options,
                                 .parser = launch_parse};

void launch_take_program(launch_t *launch, struct argp_state *state) {
  launch->program = &state->argv[state->next - 1];
  state->next = state->argc;
}

error_t launch_program_parse(launch_t *launch, int key,
                             struct argp_state *state) {
  if (key == ARGP_KEY_NO_ARGS)
    argp_error(state, "no program");
  if (key != ARGP_KEY_ARG)
    return ARGP_ERR_UNKNOWN;
  launch_take_program(launch, state);
  return 0;
}

static sdg_status_t functions_note(launch_t *launch, const sdg_rules_t *rules) {
  SDG_TRY(SDG_ALLOCATE(launch->function_name, rules->functions + 1,
                       "names of functions"));
  bool cuts = *sdg_options_get()->cuts;
  for (int f = 0; (launch->asked || cuts) && f < rules->functions; f++) {
    if (rules->function[f].is_kernel) // found by the CUDA runtime
      continue;
    char *name = strdup(rules->function[f].symbol);
    if (!name)
      return sdg_fail(SDG_E_NO_MEMORY, "names of functions");
    launch->function_name[launch->functions++] = name;
  }
  return SDG_OK;
}

sdg_status_t launch_rules(launch_t *launch, int size) {
  const sdg_options_t *options = sdg_options_get();
  sdg_rules_t rules;
  // Also with --split replicated: the mesh must have as many ranks as the run.
  if (!launch->asked && !sdg_options_replicated(options) && !*options->cuts)
    return SDG_OK;
  if (*options->cuts)
    size = (int)options->cut_ranks;
  sdg_status_t status = sdg_rules_load(options, size, &rules);
  if (status != SDG_OK)
    return options->on_error == SDG_ON_ERROR_IGNORE ? SDG_OK : status;
  launch->streams.whole = launch->asked && rules.view == SDG_VIEW_WHOLE;
  status = functions_note(launch, &rules);
  sdg_rules_fini(&rules);
  return status;
}

static bool driver_present(void) {
  return access("/dev/nvidiactl", F_OK) == 0 ||
         access("/proc/driver/nvidia/version", F_OK) == 0;
}

sdg_status_t launch_prepare(launch_t *launch) {
  (void)sdg_options_load(environ); // the next call reports a failure
  const sdg_options_t *options = sdg_options_get();
  launch->asked = sdg_options_asked(options);
  sdg_status_t fault = sdg_options_fault();
  if (fault != SDG_OK && options->on_error != SDG_ON_ERROR_IGNORE)
    return fault;
  SDG_TRY(install_find(&launch->install));
  if (launch->device == LAUNCH_AUTO)
    launch->device = driver_present() ? LAUNCH_CUDA : LAUNCH_HOST;
  else if (launch->device == LAUNCH_CUDA && !driver_present())
    return sdg_fail(SDG_E_GPUS, "--device cuda, but this machine has no "
                                "NVIDIA driver");
  if (launch->device == LAUNCH_HOST && !*launch->install.host)
    return sdg_fail(SDG_E_INSTALL,
                    "the host device's libraries are not beside %s",
                    launch->install.library);
  if (launch->device == LAUNCH_HOST && *launch->install.host12 &&
      launch->program && *launch->program && needs_twelve(*launch->program))
    memcpy(launch->install.host, launch->install.host12,
           sizeof launch->install.host);
  return SDG_OK;
}

// Returns `path` itself, or a link to it in `folder` if the path has a space or
// colon, because the loader splits lists there.
static sdg_status_t path_plain(const char *path, const char *separators,
                               const char *folder, const char *link_name,
                               char *out, size_t out_bytes) {
  if (!strpbrk(path, separators)) {
    snprintf(out, out_bytes, "%s", path);
    return SDG_OK;
  }
  snprintf(out, out_bytes, "%s/%s", folder, link_name);
  if (symlink(path, out) != 0)
    return sdg_fail(SDG_E_FOLDER, "%s: %s", out, strerror(errno));
  if (strpbrk(out, separators))
    return sdg_fail(SDG_E_INSTALL,
                    "the loader cannot preload '%s': it splits names at spaces "
                    "and colons",
                    out);
  return SDG_OK;
}

static sdg_status_t variable_join(const char *name, const char *first,
                                  const char *second) {
  char *joined = NULL;
  if (asprintf(&joined, "%s%s%s", first, *first && *second ? ":" : "", second) <
      0)
    return sdg_fail(SDG_E_NO_MEMORY, "for %s", name);
  int failed = setenv(name, joined, 1);
  free(joined);
  return failed ? sdg_fail(SDG_E_NO_MEMORY, "for %s", name) : SDG_OK;
}

static const char *variable_get(const char *name) {
  const char *value = getenv(name);
  return value ? value : "";
}

// The program's own NCCL uses the device beside sundog's communicators. Without
// an order of their kernels two ranks can wait for each other for ever. And a
// sum must not connect ranks while it is enqueued, because the other ranks may
// be late.
static sdg_status_t nccl_set(void) {
  if (setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0) != 0 ||
      setenv("NCCL_RUNTIME_CONNECT", "0", 0) != 0)
    return sdg_fail(SDG_E_NO_MEMORY, "for variables of NCCL");
  return SDG_OK;
}

sdg_status_t launch_preload(const launch_t *launch, const char *folder) {
  char path[PATH_MAX];
  SDG_TRY(path_plain(launch->install.library, " \t\n:", folder, "libsundog.so",
                     path, sizeof path));
  // Appended, so that other interposers stay in front.
  SDG_TRY(variable_join("LD_PRELOAD", variable_get("LD_PRELOAD"), path));
  if (launch->functions > 0) {
    snprintf(path, sizeof path, "%s/functions.so", folder);
    SDG_TRY(functions_write(path, (const char *const *)launch->function_name,
                            launch->functions, launch->watched));
    SDG_TRY(variable_join("LD_PRELOAD", variable_get("LD_PRELOAD"), path));
  }
  SDG_TRY(nccl_set());
  if (launch->device != LAUNCH_HOST)
    return SDG_OK;
  SDG_TRY(path_plain(launch->install.host, ":;", folder, "host", path,
                     sizeof path));
  SDG_TRY(
      variable_join("LD_LIBRARY_PATH", path, variable_get("LD_LIBRARY_PATH")));
  // Ranks share the machine's cores.
  if (setenv("OMP_NUM_THREADS", "1", 0) != 0)
    return sdg_fail(SDG_E_NO_MEMORY, "for OMP_NUM_THREADS");
  return SDG_OK;
}

// Gets item n (from 0) of a list such as "2,3,GPU-ab12". Returns false if the
// list is shorter.
static bool list_item(const char *list, int n, char *out, size_t out_bytes) {
  for (; n > 0; n--) {
    list = strchr(list, ',');
    if (!list)
      return false;
    list++;
  }
  snprintf(out, out_bytes, "%.*s", (int)strcspn(list, ","), list);
  return true;
}

int launch_gpus(void) {
  const char *visible = variable_get("CUDA_VISIBLE_DEVICES");
  int count = 0;
  if (*visible) {
    for (const char *c = visible; c; c = strchr(c + 1, ','))
      count++;
    return count;
  }
  DIR *folder = opendir("/dev");
  if (!folder)
    return -1;
  for (struct dirent *entry; (entry = readdir(folder));) {
    const char *name = entry->d_name;
    if (strncmp(name, "nvidia", 6) == 0 && isdigit((unsigned char)name[6]))
      count++;
  }
  closedir(folder);
  return count > 0 ? count : -1;
}

sdg_status_t launch_bind(const launch_t *launch, int local_rank, int size) {
  char item[128];
  const char *visible = variable_get("CUDA_VISIBLE_DEVICES");
  if (launch->device != LAUNCH_CUDA || size == 1 || launch->sees_all)
    return SDG_OK;
  if (!*visible)
    snprintf(item, sizeof item, "%d", local_rank);
  else if (!strchr(visible, ','))
    return SDG_OK; // the launcher bound this rank
  else if (!list_item(visible, local_rank, item, sizeof item))
    return sdg_fail(SDG_E_GPUS, "local rank %d, but CUDA_VISIBLE_DEVICES=%s",
                    local_rank, visible);
  if (setenv("CUDA_VISIBLE_DEVICES", item, 1) != 0)
    return sdg_fail(SDG_E_NO_MEMORY, "for CUDA_VISIBLE_DEVICES");
  return SDG_OK;
}

// Returns a copy of the word with its placeholders replaced.
static char *word_fill(const char *word, int rank, int size, int local_rank) {
  const struct {
    const char *name;
    int value;
  } fields[] = {
      {"{rank}", rank}, {"{size}", size}, {"{local_rank}", local_rank}};
  char *text = NULL;
  size_t bytes;
  FILE *out = open_memstream(&text, &bytes);
  if (!out)
    return NULL;
  while (*word) {
    size_t skip = 0;
    for (int i = 0; i < 3 && !skip; i++) {
      size_t n = strlen(fields[i].name);
      if (strncmp(word, fields[i].name, n) == 0) {
        fprintf(out, "%d", fields[i].value);
        skip = n;
      }
    }
    if (!skip)
      fputc(*word, out);
    word += skip ? skip : 1;
  }
  return fclose(out) == 0 ? text : NULL;
}

char **launch_arguments(char *const *program, int rank, int size,
                        int local_rank) {
  size_t count = 0;
  while (program[count])
    count++;
  char **words = calloc(count + 1, sizeof *words);
  for (size_t i = 0; words && i < count; i++) {
    words[i] = word_fill(program[i], rank, size, local_rank);
    if (!words[i])
      return NULL;
  }
  return words;
}
