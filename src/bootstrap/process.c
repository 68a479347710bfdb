// SPDX-License-Identifier: Apache-2.0
// Processes on this machine, and the one process of each rank.
#include "src/bootstrap/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "src/base/fd.h"

enum { PARENT = 4, START = 22, GENERATIONS = 1000 }; // fields of proc(5)

// Reads /proc/PID/FILE; false if it does not exist.
static bool file_read(int32_t pid, const char *name, char *out, size_t bytes) {
  char path[48];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
  return sdg_fd_text(path, 0, out, bytes);
}

// Reads the number in field `index` of /proc/PID/stat, and the process's
// state.
static bool field_read(int32_t pid, int index, char *out_state,
                       unsigned long long *out_number) {
  char text[1024];
  if (pid <= 0 || !file_read(pid, "stat", text, sizeof text))
    return false;
  // The second field is in parentheses and may contain spaces and parentheses.
  const char *field = strrchr(text, ')');
  if (!field || !field[1])
    return false;
  *out_state = field[2];
  for (int i = 2; field && i < index; i++)
    field = strchr(field + 1, ' ');
  return field && sscanf(field, " %llu", out_number) == 1;
}

static uint64_t name_space(void) {
  struct stat is;
  return stat("/proc/self/ns/pid", &is) == 0 ? (uint64_t)is.st_ino : 0;
}

sdg_process_t sdg_process_self(void) {
  unsigned long long start = 0;
  char state;
  sdg_process_t self = {.pid = (int32_t)getpid(), .name_space = name_space()};
  if (field_read(self.pid, START, &state, &start))
    self.start = start;
  return self;
}

bool sdg_process_lives(const sdg_process_t *process) {
  unsigned long long start;
  char state;
  return process->pid > 0 && process->name_space == name_space() &&
         field_read(process->pid, START, &state, &start) &&
         start == process->start && state != 'Z' && state != 'X';
}

bool sdg_process_is_stopped(int32_t pid) {
  unsigned long long start;
  char state;
  return field_read(pid, START, &state, &start) &&
         (state == 'T' || state == 't');
}

bool sdg_process_maps(int32_t pid, dev_t device, ino_t inode) {
  char path[48], line[512];
  snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
  FILE *maps = pid > 0 ? fopen(path, "re") : NULL;
  if (!maps)
    return false;
  bool found = false;
  while (!found && fgets(line, sizeof line, maps)) {
    unsigned long long mapped;
    unsigned major_number, minor_number;
    found = sscanf(line, "%*s %*s %*s %x:%x %llu", &major_number, &minor_number,
                   &mapped) == 3 &&
            mapped == inode && major_number == major(device) &&
            minor_number == minor(device);
  }
  fclose(maps);
  return found;
}

int32_t sdg_process_parent(int32_t pid) {
  unsigned long long parent;
  char state;
  return field_read(pid, PARENT, &state, &parent) ? (int32_t)parent : 0;
}

bool sdg_process_is_above(int32_t pid) {
  int32_t at = (int32_t)getpid();
  for (int i = 0; i < GENERATIONS && at > 0; i++) {
    if (at == pid)
      return true;
    at = sdg_process_parent(at);
  }
  return false;
}

bool sdg_process_began_with(int32_t pid, const char *name, const char *value) {
  char path[48], *text = NULL;
  size_t room = 0, length = strlen(name);
  snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
  FILE *all = pid > 0 ? fopen(path, "re") : NULL;
  bool found = false;
  while (all && !found && getdelim(&text, &room, '\0', all) > 0)
    found = strncmp(text, name, length) == 0 && text[length] == '=' &&
            (!value || strcmp(text + length + 1, value) == 0);
  if (all)
    fclose(all);
  free(text);
  return found;
}

void sdg_process_name(int32_t pid, char *out, size_t bytes) {
  if (pid <= 0 || !file_read(pid, "comm", out, bytes))
    out[0] = '\0';
  out[strcspn(out, "\n")] = '\0';
}

// ---- one process per rank ---------------------------------------------------

// The process of rank r locks byte r of a file beside the socket for as long as
// it lives.
static struct flock lock_of(short type, int start, int bytes) {
  return (struct flock){
      .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = bytes};
}

static sdg_status_t lockfile_open(const char *path, int *out_fd) {
  // O_NONBLOCK: if a FIFO has that name, open must not block the program.
  int fd = sdg_fd_raise(
      open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));
  if (fd < 0)
    return sdg_fail(SDG_E_RENDEZVOUS, "cannot make %s: %s", path,
                    strerror(errno));
  struct stat file;
  if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode) ||
      file.st_uid != geteuid() || (file.st_mode & 077)) {
    close(fd);
    return sdg_fail(SDG_E_RENDEZVOUS,
                    "%s exists and is not a file of mode 0600 of this user",
                    path);
  }
  *out_fd = fd;
  return SDG_OK;
}

// Returns true if `path` still names the open file: the last process of an
// earlier job may have removed it between our open and our lock.
static int lockfile_is(const char *path, int fd) {
  struct stat named, opened;
  return lstat(path, &named) == 0 && fstat(fd, &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

// The process of each rank is written behind the locked bytes.
enum { HOLDERS_AT = 4096 };

static off_t holder_at(int rank) {
  return HOLDERS_AT + (off_t)rank * (off_t)sizeof(sdg_process_t);
}

// Returns the process recorded for the rank; 0 if there is no record or the
// process has ended.
static int32_t holder_read(int fd, int rank) {
  sdg_process_t noted;
  if (pread(fd, &noted, sizeof noted, holder_at(rank)) != sizeof noted ||
      !sdg_process_lives(&noted))
    return 0;
  return noted.pid;
}

static void holder_note(int fd, int rank, const sdg_process_t *process) {
  // If the disk is full, the lock alone shows who holds the rank.
  ssize_t noted = pwrite(fd, process, sizeof *process, holder_at(rank));
  (void)noted;
}

sdg_status_t sdg_rank_lock_take(const char *socket_path, int rank,
                                sdg_rank_lock_t *out_lock,
                                int32_t *out_holder) {
  const sdg_process_t self = sdg_process_self();
  *out_holder = 0;
  char *path;
  if (asprintf(&path, "%s.lock", socket_path) < 0)
    return sdg_fail(SDG_E_NO_MEMORY, "path of the lock file");
  sdg_status_t status;
  // Each iteration but the last was disturbed by a job that was just ending.
  for (int turn = 0; turn < 500; turn++) {
    int fd = -1;
    SDG_TRY_GOTO(lockfile_open(path, &fd), failed);
    struct flock lock = lock_of(F_WRLCK, rank, 1);
    int32_t holder = holder_read(fd, rank);
    if (fcntl(fd, F_SETLK, &lock) == 0) {
      // Read again: the holder may have written its record in between.
      holder = holder_read(fd, rank);
      if (holder > 0 && holder != self.pid) {
        close(fd);
        *out_holder = holder;
        status = SDG_E_RANK_TAKEN;
        goto failed;
      }
      if (lockfile_is(path, fd)) {
        holder_note(fd, rank, &self);
        *out_lock = (sdg_rank_lock_t){.fd = fd, .path = path};
        return SDG_OK;
      }
      close(fd);
      continue;
    }
    int why = errno;
    lock = lock_of(F_WRLCK, rank, 1);
    int asked = fcntl(fd, F_GETLK, &lock);
    close(fd);
    if (why != EAGAIN && why != EACCES) {
      status =
          sdg_fail(SDG_E_RENDEZVOUS, "cannot lock %s: %s", path, strerror(why));
      goto failed;
    }
    // l_len 0 covers the whole file: it is held by a job's last process, which
    // is about to remove the file.
    if (asked == 0 && lock.l_type != F_UNLCK && lock.l_len == 1) {
      *out_holder = holder > 0 ? holder : lock.l_pid > 0 ? lock.l_pid : 0;
      status = SDG_E_RANK_TAKEN;
      goto failed;
    }
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  }
  status =
      sdg_fail(SDG_E_RENDEZVOUS, "%s changes too often to be locked", path);
failed:
  free(path);
  return status;
}

int sdg_rank_lock_other(const char *socket_path, int32_t *out_holder) {
  struct flock lock = lock_of(F_WRLCK, 0, 0);
  char *path;
  if (asprintf(&path, "%s.lock", socket_path) < 0)
    return -1;
  int fd =
      sdg_fd_raise(open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  free(path);
  if (fd < 0)
    return -1;
  bool held = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK &&
              lock.l_len == 1;
  close(fd);
  *out_holder = lock.l_pid;
  return held && !sdg_process_is_above(lock.l_pid) ? (int)lock.l_start : -1;
}

static void place_unlink(const char *lock_path, const char *socket_path) {
  struct stat file;
  if (socket_path && lstat(socket_path, &file) == 0 && S_ISSOCK(file.st_mode) &&
      file.st_uid == geteuid())
    unlink(socket_path);
  unlink(lock_path);
}

void sdg_rank_lock_release(sdg_rank_lock_t *lock, int rank,
                           const char *socket_path) {
  // The descriptor's number may have been reused if the program closed
  // descriptors that are not its own.
  if (lock->fd >= 0 && lockfile_is(lock->path, lock->fd)) {
    // Release our byte first, then lock the whole file: if several processes
    // leave at once, at least the last one gets that lock.
    struct flock own = lock_of(F_UNLCK, rank, 1);
    struct flock whole = lock_of(F_WRLCK, 0, 0);
    const sdg_process_t nobody = {0};
    holder_note(lock->fd, rank, &nobody);
    if (fcntl(lock->fd, F_SETLK, &own) == 0 &&
        fcntl(lock->fd, F_SETLK, &whole) == 0 &&
        lockfile_is(lock->path, lock->fd))
      place_unlink(lock->path, socket_path);
    close(lock->fd);
  }
  lock->fd = -1;
  free(lock->path);
  lock->path = NULL;
}

static bool holder_lives(int fd) {
  struct stat file;
  if (fstat(fd, &file) != 0)
    return true;
  for (int rank = 0; holder_at(rank) < file.st_size; rank++)
    if (holder_read(fd, rank))
      return true;
  return false;
}

bool sdg_rank_lock_sweep(const char *socket_path) {
  struct flock whole = lock_of(F_WRLCK, 0, 0);
  struct stat file;
  char *path;
  if (asprintf(&path, "%s.lock", socket_path) < 0)
    return false;
  int fd =
      sdg_fd_raise(open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  bool dead = fd >= 0 && fstat(fd, &file) == 0 && S_ISREG(file.st_mode) &&
              file.st_uid == geteuid() && fcntl(fd, F_SETLK, &whole) == 0 &&
              !holder_lives(fd) && lockfile_is(path, fd);
  if (dead)
    place_unlink(path, socket_path);
  if (fd >= 0)
    close(fd);
  free(path);
  return dead;
}

void sdg_rank_lock_forget(sdg_rank_lock_t *lock) {
  if (lock->fd >= 0)
    close(lock->fd);
  lock->fd = -1;
  free(lock->path);
  lock->path = NULL;
}
