// SPDX-License-Identifier: Apache-2.0
// What launchers say about a rank, and the default rendezvous.
#include <limits.h>
#include <sys/stat.h>

#include "tests/unit/ranks.h"

static const char *const launcher_variables[] = {"SUNDOG_RANK",
                                                 "SUNDOG_SIZE",
                                                 "SUNDOG_LOCAL_RANK",
                                                 "RANK",
                                                 "WORLD_SIZE",
                                                 "LOCAL_RANK",
                                                 "OMPI_COMM_WORLD_RANK",
                                                 "OMPI_COMM_WORLD_SIZE",
                                                 "OMPI_COMM_WORLD_LOCAL_RANK",
                                                 "PMI_RANK",
                                                 "PMI_SIZE",
                                                 "MPI_LOCALRANKID",
                                                 "PMI_LOCAL_RANK",
                                                 "PALS_RANKID",
                                                 "PALS_LOCAL_RANKID",
                                                 "PALS_LOCAL_SIZE",
                                                 "LOCAL_WORLD_SIZE",
                                                 "PALS_SIZE",
                                                 "PALS_APID",
                                                 "FLUX_TASK_RANK",
                                                 "FLUX_JOB_SIZE",
                                                 "FLUX_TASK_LOCAL_ID",
                                                 "FLUX_JOB_ID",
                                                 "FLUX_JOB_NNODES",
                                                 "PMIX_RANK",
                                                 "PMIX_NAMESPACE",
                                                 "SLURM_PROCID",
                                                 "SLURM_NTASKS",
                                                 "SLURM_STEP_NUM_TASKS",
                                                 "SLURM_LOCALID",
                                                 "SLURM_JOB_ID",
                                                 "SLURM_STEP_ID",
                                                 "OMPI_MCA_ess_base_jobid",
                                                 "TORCHELASTIC_RUN_ID",
                                                 "TORCHELASTIC_RESTART_COUNT",
                                                 "XDG_RUNTIME_DIR"};

// Sets exactly these variables: "A=1 B=2".
static void environment_set(const char *assignments) {
  char text[512];
  for (size_t i = 0;
       i < sizeof launcher_variables / sizeof launcher_variables[0]; i++)
    unsetenv(launcher_variables[i]);
  snprintf(text, sizeof text, "%s", assignments);
  for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
    char *equals = strchr(word, '=');
    *equals = '\0';
    setenv(word, equals + 1, 1);
  }
}

START_TEST(rank_and_size_come_from_each_launchers_variables) {
  static const struct {
    const char *environment;
    int rank, size, local_rank;
    const char *origin;
  } cases[] = {
      {"", 0, 1, 0, NULL},
      {"SUNDOG_RANK=1 SUNDOG_SIZE=4", 1, 4, 1, "SUNDOG_RANK/SUNDOG_SIZE"},
      {"SUNDOG_RANK=3 SUNDOG_SIZE=4 SUNDOG_LOCAL_RANK=1", 3, 4, 1,
       "SUNDOG_RANK/SUNDOG_SIZE"},
      {"SUNDOG_RANK=1 SUNDOG_SIZE=4 RANK=0 WORLD_SIZE=2 RANK=9", 1, 4, 1,
       "SUNDOG_RANK/SUNDOG_SIZE"},
      {"RANK=5 WORLD_SIZE=8 LOCAL_RANK=1", 5, 8, 1, "RANK/WORLD_SIZE"},
      {"OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3 "
       "OMPI_COMM_WORLD_LOCAL_RANK=0 PMIX_RANK=2",
       2, 3, 0, "OMPI_COMM_WORLD_RANK/SIZE"},
      {"PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=0", 0, 2, 0, "PMI_RANK/PMI_SIZE"},
      {"PMIX_RANK=1 SLURM_NTASKS=2 SLURM_PROCID=1 SLURM_LOCALID=0", 1, 2, 0,
       "PMIX_RANK/SLURM_NTASKS"},
      {"SLURM_PROCID=3 SLURM_NTASKS=4 SLURM_LOCALID=1", 3, 4, 1,
       "SLURM_PROCID/SLURM_NTASKS"},
      {"SLURM_PROCID=1 SLURM_NTASKS=8 SLURM_STEP_NUM_TASKS=2", 1, 2, 1,
       "SLURM_PROCID/SLURM_NTASKS"},
      {"FLUX_TASK_RANK=5 FLUX_JOB_SIZE=8 FLUX_TASK_LOCAL_ID=1 FLUX_JOB_ID=1", 5,
       8, 1, "FLUX_TASK_RANK/FLUX_JOB_SIZE"},
      // Flux also sets PMI variables, and has its own local rank.
      {"FLUX_TASK_RANK=5 FLUX_JOB_SIZE=8 PMI_RANK=5 PMI_SIZE=8 "
       "FLUX_TASK_LOCAL_ID=1",
       5, 8, 1, "PMI_RANK/PMI_SIZE"},
      {"FLUX_TASK_RANK=0 FLUX_JOB_SIZE=1 PMI_RANK=2 PMI_SIZE=4 "
       "FLUX_TASK_LOCAL_ID=0",
       2, 4, 2, "PMI_RANK/PMI_SIZE"}, // mpiexec inside a task
      {"PALS_RANKID=2 PMI_SIZE=4 PALS_LOCAL_RANKID=0", 2, 4, 0,
       "PALS_RANKID/PMI_SIZE"},
      {"PALS_RANKID=2 PMI_RANK=2 PMI_SIZE=4 PMI_LOCAL_RANK=0", 2, 4, 0,
       "PMI_RANK/PMI_SIZE"},
      {"FLUX_JOB_SIZE=8", 0, 1, 0, NULL},
      {"PMI_SIZE=8", 0, 1, 0, NULL},
      {"SLURM_NTASKS=8", 0, 1, 0, NULL}, // the shell of an allocation
      {"RANK= SLURM_PROCID=1 SLURM_NTASKS=2", 1, 2, 1,
       "SLURM_PROCID/SLURM_NTASKS"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    int rank, size, local_rank;
    const char *origin;
    environment_set(cases[i].environment);
    ck_assert_msg(sdg_rank_detect(&rank, &size, &local_rank, &origin) == SDG_OK,
                  "%s", cases[i].environment);
    ck_assert_msg(rank == cases[i].rank && size == cases[i].size &&
                      local_rank == cases[i].local_rank,
                  "%s: %d of %d, local %d", cases[i].environment, rank, size,
                  local_rank);
    if (cases[i].origin)
      ck_assert_str_eq(origin, cases[i].origin);
    else
      ck_assert_ptr_null(origin);
  }
}
END_TEST

START_TEST(contradictory_launcher_variables_are_refused_with_their_values) {
  static const struct {
    const char *environment, *says;
  } cases[] = {
      {"SUNDOG_RANK=2", "SUNDOG_RANK=2 without SUNDOG_SIZE"},
      {"SUNDOG_SIZE=2", "SUNDOG_SIZE=2 without SUNDOG_RANK"},
      {"SUNDOG_RANK=2 SUNDOG_SIZE=2",
       "SUNDOG_RANK=2 is not below SUNDOG_SIZE=2"},
      {"SUNDOG_RANK=-1 SUNDOG_SIZE=2", "SUNDOG_RANK=-1 is not a number"},
      {"SUNDOG_RANK=0 SUNDOG_SIZE=2x", "SUNDOG_SIZE=2x is not a number"},
      {"SUNDOG_RANK=0 SUNDOG_SIZE=0", "SUNDOG_RANK=0 is not below"},
      {"SUNDOG_RANK=0 SUNDOG_SIZE=99999999999", "SUNDOG_SIZE=99999999999"},
      {"SUNDOG_RANK=0 SUNDOG_SIZE=2 SUNDOG_LOCAL_RANK=2",
       "SUNDOG_LOCAL_RANK=2 is not below"},
      {"RANK=1", "RANK=1 without WORLD_SIZE"},
      {"WORLD_SIZE=1", "WORLD_SIZE=1 without RANK"},
      {"FLUX_TASK_RANK=1", "FLUX_TASK_RANK=1 without FLUX_JOB_SIZE"},
      {"PALS_RANKID=1", "PALS_RANKID=1 without PMI_SIZE"},
      {"PMIX_RANK=1",
       "PMIX_RANK=1 without SLURM_STEP_NUM_TASKS or SLURM_NTASKS"},
      {"SLURM_PROCID=+1 SLURM_NTASKS=2", "SLURM_PROCID=+1 is not a number"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    int rank, size, local_rank;
    const char *origin;
    environment_set(cases[i].environment);
    ck_assert_int_eq((int)sdg_rank_detect(&rank, &size, &local_rank, &origin),
                     (int)SDG_E_RANK_UNKNOWN);
    ck_assert_msg(strstr(sdg_last_error(), cases[i].says) != NULL, "%s",
                  sdg_last_error());
  }
}
END_TEST

START_TEST(a_missing_rank_is_refused_with_all_variables_that_were_read) {
  int rank, size, local_rank;
  const char *origin;
  environment_set("SLURM_NTASKS=4 SLURM_JOB_ID=7");
  ck_assert_int_eq((int)sdg_rank_require(&rank, &size, &local_rank, &origin),
                   (int)SDG_E_RANK_UNSAID);
  static const char *const looked[] = {
      "SUNDOG_RANK with SUNDOG_SIZE", "RANK with WORLD_SIZE (torchrun)",
      "PALS_RANKID with PMI_SIZE or PALS_SIZE", "FLUX_TASK_RANK",
      "SLURM_PROCID with SLURM_STEP_NUM_TASKS or SLURM_NTASKS (Slurm)"};
  for (size_t i = 0; i < sizeof looked / sizeof looked[0]; i++)
    ck_assert_msg(strstr(sdg_last_error(), looked[i]) != NULL, "%s",
                  sdg_last_error());
}
END_TEST

START_TEST(ranks_on_several_machines_need_a_rendezvous) {
  static const char *const launches[] = {
      "RANK=1 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2",
      "FLUX_TASK_RANK=1 FLUX_JOB_SIZE=4 FLUX_JOB_NNODES=2",
      ("PMI_RANK=1 PMI_SIZE=4 FLUX_TASK_RANK=1 FLUX_JOB_SIZE=4 "
       "FLUX_JOB_NNODES=2"),
      "PALS_RANKID=1 PMI_SIZE=4 PALS_LOCAL_SIZE=2",
      "PMI_RANK=1 PMI_SIZE=4 PALS_RANKID=1 PALS_LOCAL_SIZE=2"};
  for (size_t i = 0; i < sizeof launches / sizeof launches[0]; i++) {
    environment_set(launches[i]);
    ck_assert_int_eq((int)sdg_rendezvous_check("", 4), (int)SDG_E_RENDEZVOUS);
    ck_assert_int_eq((int)sdg_rendezvous_check("file:/x", 4), (int)SDG_OK);
  }
}
END_TEST

START_TEST(values_read_at_load_stay) {
  int rank, size, local_rank;
  const char *origin;
  environment_set("RANK=1 WORLD_SIZE=2 SLURM_JOB_ID=7");
  sdg_launcher_load();
  environment_set("RANK=0 WORLD_SIZE=1");
  clearenv();
  ck_assert_int_eq((int)sdg_rank_require(&rank, &size, &local_rank, &origin),
                   (int)SDG_OK);
  ck_assert_int_eq(rank, 1);
  ck_assert_int_eq(size, 2);
  ck_assert_str_eq(sdg_launcher_value("SLURM_JOB_ID"), "7");
}
END_TEST

START_TEST(launches_are_told_apart_by_name) {
  static const struct {
    const char *environment, *name;
  } cases[] = {
      {"", ""},
      {"SLURM_JOB_ID=7 SLURM_STEP_ID=1 SLURM_PROCID=0 SLURM_NTASKS=2",
       "SLURM_JOB_ID=7 SLURM_STEP_ID=1"},
      {"SLURM_JOB_ID=7", ""}, // a job's shell, which may start several steps
      {"FLUX_JOB_ID=123", "FLUX_JOB_ID=123"},
      {"TORCHELASTIC_RUN_ID=none RANK=0 WORLD_SIZE=1", ""},
      {"SLURM_JOB_ID=7 SLURM_STEP_ID=1 SUNDOG_RANK=0 SUNDOG_SIZE=2", ""},
  };
  char name[SDG_LAUNCH_BYTES], other[SDG_LAUNCH_BYTES], text[300];
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    environment_set(cases[i].environment);
    sdg_launch_name(name, sizeof name);
    ck_assert_str_eq(name, cases[i].name);
  }
  for (int i = 0; i < 2; i++) { // they differ beyond the buffer
    snprintf(text, sizeof text,
             "PMIX_NAMESPACE=%0120d OMPI_MCA_ess_base_jobid=%090d", i, 7);
    environment_set(text);
    sdg_launch_name(i ? name : other, sizeof name);
  }
  ck_assert_str_ne(name, other);
}
END_TEST

static void default_of(const char *environment, char *out) {
  environment_set(environment);
  ck_assert_int_eq((int)sdg_rendezvous_default(out, 256), (int)SDG_OK);
}

START_TEST(the_default_place_is_that_of_the_launch) {
  static const char *const launches[] = {
      "",
      "SLURM_JOB_ID=7 SLURM_STEP_ID=0",
      "SLURM_JOB_ID=7 SLURM_STEP_ID=1",
      "SLURM_JOB_ID=71",
      "PMIX_NAMESPACE=prterun-a-1@1",
      "PMIX_NAMESPACE=prterun-a-1@2",
      "OMPI_MCA_ess_base_jobid=7",
      "FLUX_JOB_ID=7",
      "PALS_APID=7",
      "TORCHELASTIC_RUN_ID=none",
      "TORCHELASTIC_RUN_ID=7 TORCHELASTIC_RESTART_COUNT=0",
      "TORCHELASTIC_RUN_ID=7 TORCHELASTIC_RESTART_COUNT=1",
  };
  enum { COUNT = sizeof launches / sizeof launches[0] };
  char place[COUNT][256], again[256];
  for (size_t i = 0; i < COUNT; i++) {
    char with_rank[256];
    default_of(launches[i], place[i]);
    snprintf(with_rank, sizeof with_rank, "%s SLURM_PROCID=1 RANK=1 PMI_RANK=1",
             launches[i]);
    default_of(with_rank, again);
    ck_assert_str_eq(place[i], again);
    ck_assert_int_eq(strncmp(place[i], "file:/tmp/sundog-", 17), 0);
    for (size_t j = 0; j < i; j++)
      ck_assert_str_ne(place[i], place[j]);
  }
}
END_TEST

START_TEST(the_default_place_depends_on_the_parent_unless_the_job_has_a_name) {
  char *shared = mmap(NULL, 1024, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  for (int named = 0; named < 2; named++) {
    const char *environment = named ? "PMIX_NAMESPACE=a" : "";
    default_of(environment, shared);
    fflush(NULL);
    for (int child = 1; child < 3; child++) {
      pid_t pid = fork();
      if (pid == 0) {
        default_of(environment, shared + 256 * child);
        _exit(0);
      }
      ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    }
    ck_assert_str_eq(shared + 256, shared + 512); // siblings share it
    ck_assert_int_eq(strcmp(shared, shared + 256) == 0, named);
  }
}
END_TEST

START_TEST(the_default_folder_must_be_private) {
  char folder[] = "/tmp/sdg-test-XXXXXX", place[256], inner[64], other[64];
  char environment[128];
  ck_assert_ptr_nonnull(mkdtemp(folder));
  snprintf(environment, sizeof environment, "XDG_RUNTIME_DIR=%s", folder);
  snprintf(inner, sizeof inner, "%s/sundog", folder);
  snprintf(other, sizeof other, "%s/other", folder);
  umask(0);
  default_of(environment, place);
  ck_assert_int_eq(strncmp(place + 5, inner, strlen(inner)), 0);
  struct stat found;
  ck_assert_int_eq(lstat(inner, &found), 0);
  ck_assert_int_eq(found.st_mode, S_IFDIR | 0700);
  ck_assert_int_eq(chmod(inner, 0770), 0);
  ck_assert_int_eq((int)sdg_rendezvous_default(place, sizeof place),
                   (int)SDG_E_RENDEZVOUS);
  ck_assert_int_eq(chmod(inner, 0700), 0);
  ck_assert_int_eq(rename(inner, other), 0);
  ck_assert_int_eq(symlink(other, inner), 0); // a link, whose target may change
  ck_assert_int_eq((int)sdg_rendezvous_default(place, sizeof place),
                   (int)SDG_E_RENDEZVOUS);
  ck_assert_int_eq(unlink(inner), 0);
  ck_assert_int_eq(chmod(folder, 0755), 0); // then the folder is not used
  ck_assert_int_eq((int)sdg_rendezvous_default(place, sizeof place),
                   (int)SDG_OK);
  ck_assert_int_eq(strncmp(place, "file:/tmp/sundog-", 17), 0);
  ck_assert_int_eq(rmdir(other), 0);
  ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("launchers");
  TCase *cases = tcase_create("launchers");
  tcase_set_timeout(cases, RANKS_LIMIT_SECONDS);
  tcase_add_test(cases, rank_and_size_come_from_each_launchers_variables);
  tcase_add_test(
      cases, contradictory_launcher_variables_are_refused_with_their_values);
  tcase_add_test(cases,
                 a_missing_rank_is_refused_with_all_variables_that_were_read);
  tcase_add_test(cases, ranks_on_several_machines_need_a_rendezvous);
  tcase_add_test(cases, values_read_at_load_stay);
  tcase_add_test(cases, launches_are_told_apart_by_name);
  tcase_add_test(cases, the_default_place_is_that_of_the_launch);
  tcase_add_test(
      cases, the_default_place_depends_on_the_parent_unless_the_job_has_a_name);
  tcase_add_test(cases, the_default_folder_must_be_private);
  suite_add_tcase(suite, cases);
  int failed = harness_run(suite);
  char folder[64];
  snprintf(folder, sizeof folder, "/tmp/sundog-%u", (unsigned)geteuid());
  rmdir(folder); // the default one, unless a job is using it
  return failed;
}
