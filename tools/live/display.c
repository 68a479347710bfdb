// SPDX-License-Identifier: Apache-2.0
// Passes the ranks' text on to the terminal, and draws a line below it.
#include "tools/live/display.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/base/log.h"
#include "tools/launch/descendants.h"
#include "tools/launch/label.h"
#include "tools/live/cursor.h"
#include "tools/live/line.h"
#include "tools/live/totals.h"
#include "tools/live/rates.h"
#include "tools/program/setting.h"

static const int64_t SECOND_NS = 1000000000;
enum {
  CHUNK_BYTES = 1 << 16,
  WIDTH = 80,      // of a terminal that does not know its own
  QUIET_MS = 20,   // without text for so long, the line is drawn again
  WAIT_MS = 10000, // for a reader of the terminal
  ERASE_MS = 500,  // for the line to be erased, if text may still come
  LAST_S = 10,     // for the last text, if the command was killed
};

// What the process knows.
typedef struct drawing {
  int terminal, text; // standard error; the ranks' end of it
  pid_t group;        // the run's process group
  pid_t parent;       // the command
  const sdg_live_t *live;
  samples_t *samples;
  int64_t start_ns, next_ns; // of the run; of the next look at the ranks
  struct winsize size;
  cursor_t cursor;
  const rates_t *rates; // NULL: it is too early for a line
  int64_t looked_ns;
  bool drawn;     // the line is on the terminal
  bool due;       // it was erased for text, or is new
  int64_t end_ns; // when this process ends in any case; 0: not known
} drawing_t;

static volatile sig_atomic_t ending; // the command has ended or wants to

static void ending_note(int number) {
  (void)number;
  ending = 1;
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * SECOND_NS + now.tv_nsec;
}

// ---- the line ---------------------------------------------------------------

// In the background the terminal belongs to the shell, and the place of the
// line is not known any more. A terminal that is not the session's has no
// foreground.
static bool in_foreground(drawing_t *d) {
  pid_t group = tcgetpgrp(d->terminal);
  if (group < 0 || group == d->group)
    return true;
  d->drawn = false;
  return false;
}

static bool erase(drawing_t *d) {
  static const char text[] = "\r\x1b[K";
  bool drawn = in_foreground(d) && d->drawn;
  d->drawn = false;
  return !drawn || label_write(d->terminal, text, strlen(text));
}

// The ranks' end has the size of the terminal, which tells its foreground of a
// change before that end has changed: the ranks are told again.
static void size_follow(drawing_t *d) {
  struct winsize size = {.ws_col = 0};
  if (ioctl(d->terminal, TIOCGWINSZ, &size) != 0 ||
      memcmp(&size, &d->size, sizeof size) == 0)
    return;
  d->size = size;
  (void)ioctl(d->text, TIOCSWINSZ, &size);
  if (d->next_ns > d->start_ns && getppid() == d->parent)
    kill(-d->group, SIGWINCH);
}

static bool draw(drawing_t *d) {
  char line[LINE_BYTES], text[LINE_BYTES + 16];
  d->due = false;
  if (ending || !d->rates || cursor_is_busy(&d->cursor) || !in_foreground(d))
    return true;
  size_follow(d);
  // A character in the last column could move the cursor to the next line.
  line_write(d->rates, (double)(d->looked_ns - d->start_ns) / 1e9,
             (d->size.ws_col ? d->size.ws_col : WIDTH) - 1, line);
  if (!*line)
    return true;
  int bytes = snprintf(text, sizeof text, "\r%s\x1b[K", line);
  d->drawn = true;
  return label_write(d->terminal, text, (size_t)bytes);
}

static bool look(drawing_t *d) {
  int64_t now = now_ns();
  size_follow(d);
  const rates_t *rates = rates_take(d->samples, d->live, now);
  if (now > d->start_ns + SECOND_NS / 2)
    d->rates = rates;
  d->looked_ns = now;
  d->next_ns += SECOND_NS;
  if (d->next_ns <= now)
    d->next_ns = now + SECOND_NS;
  return draw(d);
}

// ---- the process ------------------------------------------------------------

// Returns false at the end of the ranks' text, or if the terminal is gone.
static bool text_pass(drawing_t *d) {
  static char chunk[CHUNK_BYTES];
  ssize_t n = read(d->text, chunk, sizeof chunk);
  if (n < 0 && (errno == EINTR || errno == EAGAIN))
    return true;
  if (n <= 0 || !erase(d))
    return false; // EIO: no process has the other end
  cursor_follow(&d->cursor, chunk, (size_t)n);
  d->due = true;
  return label_write(d->terminal, chunk, (size_t)n);
}

// The command was killed: others may have written into the line already, so it
// is left, and ended.
static bool leave(drawing_t *d) {
  bool drawn = in_foreground(d) && d->drawn;
  d->drawn = false;
  return !drawn || label_write(d->terminal, "\r\n", 2);
}

// Returns whether more text may come although this process was told to end:
// the process that watches the ranks ends them when the command was killed.
static bool text_awaits(drawing_t *d) {
  if (!ending)
    return true;
  if (getppid() == d->parent)
    return false; // it has waited for the text
  if (d->end_ns == 0)
    d->end_ns = now_ns() + LAST_S * SECOND_NS;
  return leave(d) && now_ns() < d->end_ns;
}

static struct timespec until(const drawing_t *d) {
  int64_t wait = d->next_ns - now_ns();
  if (d->due && wait > QUIET_MS * (SECOND_NS / 1000))
    wait = QUIET_MS * (SECOND_NS / 1000);
  if (wait < 0)
    wait = 0;
  return (struct timespec){wait / SECOND_NS, wait % SECOND_NS};
}

static void drawing_run(drawing_t *d, const sigset_t *mask) {
  for (bool goes = look(d); goes;) {
    struct pollfd polled = {.fd = d->text, .events = POLLIN};
    struct timespec timeout = until(d);
    int n = ppoll(&polled, 1, &timeout, mask);
    goes = text_awaits(d);
    if (goes && n > 0)
      goes = text_pass(d);
    else if (goes && n == 0 && d->due)
      goes = draw(d);
    if (goes && now_ns() >= d->next_ns)
      goes = look(d);
  }
  (void)erase(d);
}

// The main function of the process. It has its own process group, so that no
// signal to the run ends it before it has written the last text.
static _Noreturn void display_become(drawing_t *d) {
  sigset_t all, mask;
  struct sigaction action = {.sa_handler = ending_note};
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  sigaction(SIGTERM, &action, NULL);
  mask = all;
  sigdelset(&mask, SIGTERM);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  ending = getppid() != d->parent;
  (void)setpgid(0, 0);
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int i = STDIN_FILENO; null >= 0 && i <= STDERR_FILENO; i++)
    dup2(null, i);
  drawing_run(d, &mask);
  _exit(EXIT_SUCCESS);
}

// ---- the command's side -----------------------------------------------------

bool display_possible(void) {
  const char *term = getenv("TERM"), *ci = getenv("CI");
  return isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0 &&
         !(ci && *ci && strcmp(ci, "false") != 0 && strcmp(ci, "0") != 0);
}

// Makes a pseudo-terminal like the terminal `like`, which passes text on as it
// is: the terminal itself changes ends of lines.
static bool pair_make(int like, int *out_text, int *out_ranks) {
  char path[64];
  struct termios mode;
  struct winsize size;
  *out_ranks = -1;
  *out_text = sdg_fd_raise(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (*out_text < 0 || grantpt(*out_text) != 0 || unlockpt(*out_text) != 0 ||
      ptsname_r(*out_text, path, sizeof path) != 0)
    return false;
  *out_ranks = sdg_fd_raise(open(path, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (*out_ranks < 0 || tcgetattr(like, &mode) != 0)
    return false;
  mode.c_oflag &= ~(tcflag_t)OPOST;
  if (ioctl(like, TIOCGWINSZ, &size) == 0)
    (void)ioctl(*out_text, TIOCSWINSZ, &size);
  return tcsetattr(*out_ranks, TCSANOW, &mode) == 0;
}

// Returns whether text written there appears on the terminal of the line.
static bool on_terminal(int stream) {
  struct stat of, terminal;
  return isatty(stream) && fstat(stream, &of) == 0 &&
         fstat(STDERR_FILENO, &terminal) == 0 && of.st_rdev == terminal.st_rdev;
}

static void streams_turn(int to, display_t *display) {
  for (int i = 0; i < 2; i++) {
    int stream = STDOUT_FILENO + i;
    display->saved[i] = on_terminal(stream)
                            ? fcntl(stream, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
                            : -1;
    if (display->saved[i] >= 0)
      dup2(to, stream);
  }
}

// The user may have asked for it already.
static sdg_status_t waits_ask(void) {
  const char *asked = getenv("SUNDOG_WAITS");
  return asked && strcmp(asked, "yes") == 0
             ? SDG_OK
             : setting_make("SUNDOG_WAITS", "yes", SDG_ORIGIN_COMMAND);
}

sdg_status_t display_start(int size, const char *folder, display_t *out) {
  drawing_t drawing = {
      .group = getpgrp(), .parent = getpid(), .start_ns = now_ns()};
  int ranks = -1, done[2];
  sdg_live_t *live;
  drawing.next_ns = drawing.start_ns;
  drawing.terminal = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (drawing.terminal < 0 ||
      !pair_make(STDERR_FILENO, &drawing.text, &ranks) ||
      pipe2(done, O_CLOEXEC) != 0) {
    sdg_log("--progress draws nothing, because there is no pseudo-terminal for "
            "it: %s",
            strerror(errno));
    return SDG_OK;
  }
  SDG_TRY(totals_create(size, &live));
  SDG_TRY(rates_create(size, folder, &drawing.samples));
  SDG_TRY(waits_ask());
  drawing.live = live;
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    close(ranks);
    close(done[0]);
    display_become(&drawing);
  }
  if (pid < 0)
    return sdg_fail(SDG_E_START, "fork: %s", strerror(errno));
  family_spare(pid); // it must outlive the ranks
  *out = (display_t){.pid = pid, .done = done[0]};
  streams_turn(ranks, out);
  close(done[1]);
  close(ranks);
  close(drawing.text);
  close(drawing.terminal);
  return SDG_OK;
}

void display_end(display_t *display) {
  if (!display->pid)
    return;
  fflush(NULL);
  for (int i = 0; i < 2; i++)
    if (display->saved[i] >= 0) {
      dup2(display->saved[i], STDOUT_FILENO + i);
      close(display->saved[i]);
    }
  struct pollfd polled = {.fd = display->done, .events = POLLIN};
  if (poll(&polled, 1, WAIT_MS) <= 0)
    kill(display->pid, SIGTERM);
  // If the user has stopped the terminal, the process writes when he lets it go
  // on.
  if (poll(&polled, 1, ERASE_MS) > 0)
    (void)waitpid(display->pid, NULL, 0);
  display->pid = 0;
}
