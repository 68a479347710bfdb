// SPDX-License-Identifier: Apache-2.0
// How ranks find each other: who is let in, who is told off, what strangers
// and leftovers do to a job, and what launchers say.
#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "tests/unit/ranks.h"

static sdg_status_t body_all_meet(sdg_control_t *control, ranks_t *ranks) {
  static const int everybody[RANKS_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};
  char all[RANKS_MAX][SDG_CONTROL_RECORD_BYTES];
  size_t bytes[RANKS_MAX];
  int rank = sdg_control_rank(control);
  (void)ranks;
  SDG_TRY(sdg_control_exchange(control, 0, everybody, sdg_control_size(control),
                               &rank, sizeof rank, all, bytes, "the test"));
  for (int r = 0; r < sdg_control_size(control); r++)
    if (bytes[r] != sizeof r || memcmp(all[r], &r, sizeof r) != 0)
      return sdg_fail(SDG_E_INTERNAL, "rank %d's record", r);
  return SDG_OK;
}

static sdg_status_t body_hold(sdg_control_t *control, ranks_t *ranks) {
  int rank = sdg_control_rank(control);
  SDG_TRY(body_all_meet(control, ranks));
  atomic_store(&ranks->result[rank].stage, 1);
  ranks_await(ranks, 7, 1); // until the test says so
  return body_all_meet(control, ranks);
}

static void all_ok(ranks_t *ranks) {
  for (int r = 0; r < ranks->size; r++)
    ranks_assert(ranks, r, SDG_OK);
}

// ---- who is let in --------------------------------------------------------

START_TEST(a_second_process_of_a_rank_learns_it_at_once_and_silently) {
  ranks_t *ranks = ranks_init(2, 20);
  ranks_start(ranks, body_hold);
  ranks_await(ranks, 0, 1);
  ranks_await(ranks, 1, 1);
  for (int r = 0; r < 2; r++) { // the job goes on meanwhile
    double start = ranks_now();
    sdg_control_t *control;
    ck_assert_int_eq(
        (int)sdg_control_join(ranks->rendezvous, r, 2, 20, &control),
        (int)SDG_E_RANK_TAKEN);
    ck_assert(ranks_now() - start < harness_soon(1));
    ck_assert_str_eq(sdg_last_error(), "");
  }
  atomic_store(&ranks->result[7].stage, 1);
  ranks_wait(ranks);
  all_ok(ranks);
  ranks_fini(ranks);
}
END_TEST

static sdg_status_t body_children(sdg_control_t *control, ranks_t *ranks) {
  sdg_control_t *second;
  int rank = sdg_control_rank(control), status;
  SDG_TRY(body_all_meet(control, ranks));
  if (sdg_control_join(ranks->rendezvous, rank, 2, 5, &second) !=
      SDG_E_RANK_TAKEN)
    return sdg_fail(SDG_E_INTERNAL, "the same process joined twice");
  pid_t child = fork();
  if (child == 0)
    _exit(sdg_control_join(ranks->rendezvous, rank, 2, 5, &second) ==
                  SDG_E_RANK_TAKEN
              ? 0
              : 1);
  if (waitpid(child, &status, 0) != child || status != 0)
    return sdg_fail(SDG_E_INTERNAL, "a child joined as its parent's rank");
  // Neither attempt made others think that this rank is gone.
  SDG_TRY(body_all_meet(control, ranks));
  return sdg_control_check(control, 1);
}

START_TEST(a_child_and_a_second_join_find_the_rank_taken) {
  ranks_t *ranks = ranks_init(2, 20);
  ranks_run(ranks, body_children);
  all_ok(ranks);
  ranks_fini(ranks);
}
END_TEST

START_TEST(a_wrong_size_is_an_error_on_all_that_names_both) {
  ranks_t *ranks = ranks_init(3, 20);
  ranks_start_one(ranks, 0, body_all_meet);
  ranks_start_one(ranks, 1, body_all_meet);
  ranks_sleep_ms(100);
  pid_t pid = fork();
  if (pid == 0) {
    ranks_child(ranks, 2, 4, NULL, &ranks->result[2]);
    exit(0);
  }
  ranks->pid[2] = pid;
  ranks_wait(ranks);
  for (int r = 0; r < 3; r++) {
    ranks_assert(ranks, r, SDG_E_RENDEZVOUS);
    ranks_assert_text(ranks, r, "rank 2 has size 4, rank 0 has size 3");
    ck_assert(ranks->result[r].seconds < harness_soon(5));
  }
  ranks_fini(ranks);
}
END_TEST

START_TEST(missing_ranks_are_named_in_time_on_all) {
  ranks_t *ranks = ranks_init(5, 1);
  ranks_start_one(ranks, 0, NULL);
  ranks_start_one(ranks, 2, NULL);
  ranks_wait(ranks);
  for (int r = 0; r < 3; r += 2) {
    ranks_assert(ranks, r, SDG_E_JOIN_TIMEOUT);
    ranks_assert_text(ranks, r, "ranks 1, 3, 4 of 5");
    ck_assert(ranks->result[r].seconds < harness_soon(3));
  }
  ranks_fini(ranks);
}
END_TEST

START_TEST(a_missing_rank_0_is_named) {
  ranks_t *ranks = ranks_init(2, 0.5);
  ranks_start_one(ranks, 1, NULL);
  ranks_wait(ranks);
  ranks_assert(ranks, 1, SDG_E_JOIN_TIMEOUT);
  ranks_assert_text(ranks, 1, "rank 0 of 2");
  ck_assert(ranks->result[1].seconds < harness_soon(2.5));
  ranks_fini(ranks);
}
END_TEST

START_TEST(a_rank_that_dies_while_others_join_ends_the_join) {
  for (int dead = 0; dead < 2; dead++) {
    ranks_t *ranks = ranks_init(3, 30);
    ranks_start_one(ranks, 0, NULL);
    ranks_start_one(ranks, 1, NULL);
    ranks_sleep_ms(200);
    ranks_signal(ranks, dead, SIGKILL);
    ranks_wait(ranks);
    ranks_assert(ranks, !dead, SDG_E_PEER_LOST);
    ranks_assert_text(ranks, !dead,
                      dead ? "rank 1 ended while rank 0 waits for rank 2"
                           : "rank 0 ended while rank 1 waits for rank 2");
    ck_assert(ranks->result[!dead].seconds < harness_soon(3));
    ranks_fini(ranks); // the survivor removed the dead one's socket
  }
}
END_TEST

START_TEST(ranks_may_come_in_any_order) {
  ranks_t *ranks = ranks_init(4, 20);
  for (int r = 3; r >= 0; r--) {
    ranks_start_one(ranks, r, body_all_meet);
    ranks_sleep_ms(60);
  }
  ranks_wait(ranks);
  all_ok(ranks);
  ranks_fini(ranks);
}
END_TEST

// ---- places ---------------------------------------------------------------

START_TEST(two_jobs_with_two_paths_do_not_meet) {
  ranks_t *one = ranks_init(2, 20), *two = ranks_init(3, 20);
  ranks_start(one, body_hold);
  ranks_start(two, body_hold);
  for (int r = 0; r < 2; r++)
    ranks_await(one, r, 1);
  for (int r = 0; r < 3; r++)
    ranks_await(two, r, 1);
  atomic_store(&one->result[7].stage, 1);
  atomic_store(&two->result[7].stage, 1);
  ranks_wait(one);
  ranks_wait(two);
  all_ok(one);
  all_ok(two);
  ranks_fini(one);
  ranks_fini(two);
}
END_TEST

START_TEST(one_path_serves_jobs_one_after_the_other) {
  ranks_t *ranks = ranks_init(3, 20);
  for (int turn = 0; turn < 40; turn++) {
    ranks_run(ranks, body_all_meet);
    all_ok(ranks);
    ck_assert_int_eq(ranks_files(ranks), 0);
  }
  ranks_fini(ranks);
}
END_TEST

START_TEST(a_killed_job_does_not_disturb_the_next) {
  ranks_t *ranks = ranks_init(2, 20);
  ranks_start_one(ranks, 0, NULL); // waits with its socket open
  ranks_sleep_ms(200);
  ck_assert_int_eq(ranks_files(ranks), 2);
  ranks_signal(ranks, 0, SIGKILL);
  ranks_wait(ranks);
  ck_assert_int_eq(ranks_files(ranks), 2); // nobody was left to remove them
  ranks_run(ranks, body_all_meet);
  all_ok(ranks);
  ranks_fini(ranks);
}
END_TEST

START_TEST(the_socket_is_for_this_user_alone_whatever_the_umask) {
  ranks_t *ranks = ranks_init(2, 20);
  umask(0);
  ranks_start_one(ranks, 0, body_all_meet);
  ranks_sleep_ms(200);
  struct stat file;
  char path[128];
  snprintf(path, sizeof path, "%s/meet", ranks->folder);
  ck_assert_int_eq(lstat(path, &file), 0);
  ck_assert_int_eq(file.st_mode, S_IFSOCK | 0600);
  snprintf(path, sizeof path, "%s/meet.lock", ranks->folder);
  ck_assert_int_eq(lstat(path, &file), 0);
  ck_assert_int_eq(file.st_mode, S_IFREG | 0600);
  ranks_start_one(ranks, 1, body_all_meet);
  ranks_wait(ranks);
  all_ok(ranks);
  ranks_fini(ranks);
}
END_TEST

START_TEST(a_path_may_have_spaces) {
  ranks_t *ranks = ranks_init(2, 20);
  strcat(ranks->rendezvous, " of my ranks; \"here\" %s");
  ranks_run(ranks, body_all_meet);
  all_ok(ranks);
  ranks_fini(ranks);
}
END_TEST

START_TEST(a_path_may_be_longer_than_a_socket_address) {
  ranks_t *ranks = ranks_init(3, 20);
  char folder[400];
  snprintf(folder, sizeof folder, "%s/%0200d", ranks->folder, 0);
  ck_assert_int_eq(mkdir(folder, 0700), 0);
  snprintf(ranks->rendezvous, sizeof ranks->rendezvous, "file:%s/meet", folder);
  ranks_run(ranks, body_all_meet);
  all_ok(ranks);
  ck_assert_int_eq(rmdir(folder), 0);
  snprintf(ranks->rendezvous, sizeof ranks->rendezvous, "file:%s/%0150d",
           ranks->folder, 0);
  ranks_run(ranks, body_all_meet);
  for (int r = 0; r < 3; r++) {
    ranks_assert(ranks, r, SDG_E_RENDEZVOUS);
    ranks_assert_text(ranks, r, "too long for a socket");
  }
  ranks_fini(ranks);
}
END_TEST

START_TEST(places_that_cannot_be_used_are_refused_at_once) {
  static const struct {
    const char *rendezvous, *says;
  } bad[] = {
      {NULL, "none is given"},
      {"", "none is given"},
      {"http://localhost:1234", "is neither file:/path nor"},
      {"file:relative", "is neither file:/path nor tcp://host:port"},
      {"/tmp/no-scheme", "is neither file:/path nor"},
      {"file:/tmp/", "is neither file:/path nor"},
      {"file:/nonexistent-folder/meet", "No such file"},
      {"file:/dev/null/meet", "Not a directory"},
  };
  sdg_control_t *control;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    for (int rank = 0; rank < 2; rank++) {
      double start = ranks_now();
      ck_assert_int_eq(
          (int)sdg_control_join(bad[i].rendezvous, rank, 2, 20, &control),
          (int)SDG_E_RENDEZVOUS);
      ck_assert_msg(strstr(sdg_last_error(), bad[i].says) != NULL, "%s",
                    sdg_last_error());
      ck_assert(ranks_now() - start < harness_soon(1));
    }
  ck_assert_int_eq((int)sdg_control_join(NULL, 2, 2, 20, &control),
                   (int)SDG_E_RANK_UNKNOWN);
  ck_assert_int_eq((int)sdg_control_join(NULL, 0, 0, 20, &control),
                   (int)SDG_E_RANK_UNKNOWN);
  ck_assert_int_eq((int)sdg_control_join(NULL, 0, 100000, 20, &control),
                   (int)SDG_E_RANK_UNKNOWN);
}
END_TEST

// Puts a thing of each kind where the socket or the lock file should be.
START_TEST(what_is_not_ours_at_the_path_is_refused_and_left_alone) {
  ranks_t *ranks = ranks_init(2, 20);
  char path[128], target[128];
  struct stat before, after;
  snprintf(target, sizeof target, "%s/other", ranks->folder);
  for (int kind = 0; kind < 6; kind++) {
    snprintf(path, sizeof path, "%s/meet%s", ranks->folder,
             kind < 2 ? "" : ".lock");
    if (kind == 0 || kind == 2)
      ck_assert_int_eq(mkdir(path, 0700), 0);
    if (kind == 1)
      close(creat(path, 0600));
    if (kind == 3)
      ck_assert_int_eq(mkfifo(path, 0600), 0);
    if (kind == 4)
      ck_assert_int_eq(symlink(target, path), 0);
    if (kind == 5) {
      close(creat(path, 0600));
      ck_assert_int_eq(chmod(path, 0666), 0);
    }
    ck_assert_int_eq(lstat(path, &before), 0);
    ranks_start_one(ranks, 0, NULL);
    ranks_wait(ranks);
    ranks_assert(ranks, 0, SDG_E_RENDEZVOUS);
    ck_assert_int_eq(lstat(path, &after), 0);
    ck_assert(before.st_ino == after.st_ino && before.st_mode == after.st_mode);
    ck_assert_int_eq(remove(path), 0);
    ck_assert_int_eq(ranks_files(ranks), 0);
  }
  ranks_fini(ranks);
}
END_TEST

// ---- strangers ------------------------------------------------------------

static struct sockaddr_un address_of(const ranks_t *ranks) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s/meet", ranks->folder);
  return address;
}

static int stranger(const ranks_t *ranks) {
  struct sockaddr_un address = address_of(ranks);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  for (int i = 0; connect(fd, (const void *)&address, sizeof address) != 0;
       i++) {
    ck_assert_int_lt(i, 5000);
    ranks_sleep_ms(1);
  }
  return fd;
}

START_TEST(a_foreign_server_is_left_alone) {
  ranks_t *ranks = ranks_init(2, 1.5);
  struct sockaddr_un address = address_of(ranks);
  int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ck_assert_int_eq(bind(server, (const void *)&address, sizeof address), 0);
  ck_assert_int_eq(listen(server, 5), 0);
  ranks_start_one(ranks, 0, NULL);
  ranks_wait_one(ranks, 0);
  ranks_assert(ranks, 0, SDG_E_RANK_TAKEN);
  ck_assert_int_eq(ranks_files(ranks), 1); // the server's socket
  // To another rank it says what no rank 0 would, then nothing at all.
  for (int turn = 0; turn < 2; turn++) {
    ranks_start_one(ranks, 1, NULL);
    int client;
    do
      client = accept(server, NULL, NULL);
    while (client >= 0 && recv(client, &(char){0}, 1, MSG_PEEK) == 0);
    static const char noise[300] = "HTTP/1.1 400 Bad Request";
    if (turn == 0)
      ck_assert_int_eq(send(client, noise, sizeof noise, MSG_NOSIGNAL),
                       sizeof noise);
    ranks_wait_one(ranks, 1);
    ranks_assert(ranks, 1, turn ? SDG_E_JOIN_TIMEOUT : SDG_E_RENDEZVOUS);
    close(client);
  }
  close(server);
  unlink(address.sun_path);
  ranks_fini(ranks);
}
END_TEST

// Random bytes, in random pieces, with and without a right beginning; rank 0
// must neither crash nor keep the real ranks out.
START_TEST(strangers_with_garbage_do_not_disturb_a_job) {
  ranks_t *ranks = ranks_init(3, 20);
  unsigned seed = 12345;
  ranks_start_one(ranks, 0, body_all_meet);
  int open_fds[200], open_count = 0;
  for (int turn = 0; turn < 300; turn++) {
    struct {
      uint64_t magic;
      uint32_t layout, size, rank, reserved;
      char more[100];
    } message;
    for (size_t i = 0; i < sizeof message; i++)
      ((char *)&message)[i] = (char)(rand_r(&seed) >> 7);
    if (turn % 3 == 0)
      message.magic = UINT64_C(0x7364672d68656c6f);
    if (turn % 6 == 0) { // all right but the rank
      message.layout = sdg_segment_layout();
      message.size = 3;
      message.rank = turn % 12 ? 0 : (uint32_t)rand_r(&seed) | 0x80000000u;
    }
    size_t bytes = (size_t)rand_r(&seed) % (sizeof message + 1);
    int fd = stranger(ranks);
    for (size_t at = 0; at < bytes;) {
      size_t piece = 1 + (size_t)rand_r(&seed) % (bytes - at);
      if (send(fd, (char *)&message + at, piece, MSG_NOSIGNAL) < 0)
        break;
      at += piece;
    }
    if (turn % 5 == 0 && open_count < 25)
      open_fds[open_count++] = fd; // never says the rest
    else
      close(fd);
  }
  ranks_start_one(ranks, 1, body_all_meet);
  ranks_start_one(ranks, 2, body_all_meet);
  ranks_wait(ranks);
  all_ok(ranks);
  while (open_count > 0)
    close(open_fds[--open_count]);
  ranks_fini(ranks);
}
END_TEST

// Needs root, to be somebody else; for others there is nothing to see.
START_TEST(another_user_gets_no_answer_even_if_the_socket_were_open) {
  if (geteuid() != 0)
    return;
  ranks_t *ranks = ranks_init(2, 20);
  struct sockaddr_un address = address_of(ranks);
  ranks_start_one(ranks, 0, body_all_meet);
  close(stranger(ranks)); // it listens
  ck_assert_int_eq(chmod(ranks->folder, 0755), 0);
  ck_assert_int_eq(chmod(address.sun_path, 0666), 0);
  struct {
    uint64_t magic;
    uint32_t layout, size, rank, reserved;
  } hello = {UINT64_C(0x7364672d68656c6f), sdg_segment_layout(), 2, 1, 0};
  for (int other = 1; other >= 0; other--) { // then root: hello is right
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
      char answer[256];
      if (!other)
        hello.size = 3; // is answered, by an error that ends the job
      if (other && setuid(65534) != 0)
        _exit(9);
      int fd = stranger(ranks);
      if (send(fd, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello)
        _exit(1);
      _exit(recv(fd, answer, sizeof answer, 0) > 0 ? 2 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(WEXITSTATUS(status), other ? 1 : 2);
  }
  ranks_wait(ranks);
  ranks_assert(ranks, 0, SDG_E_RENDEZVOUS);
  ranks_fini(ranks);
}
END_TEST

START_TEST(more_silent_strangers_than_places_are_outlived) {
  ranks_t *ranks = ranks_init(2, 20);
  int fd[60];
  ranks_start_one(ranks, 0, body_all_meet);
  for (int i = 0; i < 60; i++)
    fd[i] = stranger(ranks);
  ranks_start_one(ranks, 1, body_all_meet);
  ranks_wait(ranks);
  all_ok(ranks);
  for (int i = 0; i < 60; i++)
    close(fd[i]);
  ranks_fini(ranks);
}
END_TEST

// ---- launchers ------------------------------------------------------------

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

START_TEST(launchers_say_rank_and_size) {
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

START_TEST(contradictory_ranks_are_refused_with_their_values) {
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
      {"PMIX_RANK=1", "PMIX_RANK=1 without SLURM_NTASKS"},
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
    ck_assert_str_eq(shared + 256, shared + 512); // siblings meet
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
  ck_assert_int_eq(symlink(other, inner), 0); // whose target may change
  ck_assert_int_eq((int)sdg_rendezvous_default(place, sizeof place),
                   (int)SDG_E_RENDEZVOUS);
  ck_assert_int_eq(unlink(inner), 0);
  ck_assert_int_eq(chmod(folder, 0755), 0); // then it is not used at all
  ck_assert_int_eq((int)sdg_rendezvous_default(place, sizeof place),
                   (int)SDG_OK);
  ck_assert_int_eq(strncmp(place, "file:/tmp/sundog-", 17), 0);
  ck_assert_int_eq(rmdir(other), 0);
  ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("rendezvous");
  TCase *cases = tcase_create("rendezvous");
  tcase_set_timeout(cases, RANKS_LIMIT_SECONDS);
  tcase_add_test(cases,
                 a_second_process_of_a_rank_learns_it_at_once_and_silently);
  tcase_add_test(cases, a_child_and_a_second_join_find_the_rank_taken);
  tcase_add_test(cases, a_wrong_size_is_an_error_on_all_that_names_both);
  tcase_add_test(cases, missing_ranks_are_named_in_time_on_all);
  tcase_add_test(cases, a_missing_rank_0_is_named);
  tcase_add_test(cases, a_rank_that_dies_while_others_join_ends_the_join);
  tcase_add_test(cases, ranks_may_come_in_any_order);
  tcase_add_test(cases, two_jobs_with_two_paths_do_not_meet);
  tcase_add_test(cases, one_path_serves_jobs_one_after_the_other);
  tcase_add_test(cases, a_killed_job_does_not_disturb_the_next);
  tcase_add_test(cases, the_socket_is_for_this_user_alone_whatever_the_umask);
  tcase_add_test(cases, a_path_may_have_spaces);
  tcase_add_test(cases, a_path_may_be_longer_than_a_socket_address);
  tcase_add_test(cases, places_that_cannot_be_used_are_refused_at_once);
  tcase_add_test(cases, what_is_not_ours_at_the_path_is_refused_and_left_alone);
  tcase_add_test(cases, a_foreign_server_is_left_alone);
  tcase_add_test(cases, strangers_with_garbage_do_not_disturb_a_job);
  tcase_add_test(cases,
                 another_user_gets_no_answer_even_if_the_socket_were_open);
  tcase_add_test(cases, more_silent_strangers_than_places_are_outlived);
  tcase_add_test(cases, launchers_say_rank_and_size);
  tcase_add_test(cases, contradictory_ranks_are_refused_with_their_values);
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
