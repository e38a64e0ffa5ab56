/* Where the sockets are, and how to start a daemon, in the order of PROTOCOL.md. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire.h"

/* The command gives up after ten seconds by itself. */
enum { START_MS = 15000, WRITABLE_BY_OTHERS = 022 };

static const char *set(const char *name) {
  const char *value = getenv(name);
  return value && *value ? value : NULL;
}

static const char *absolute(const char *name) {
  const char *value = set(name);
  return value && *value == '/' ? value : NULL;
}

int memd_places(const char *argument, char places[2][512]) {
  const char *chosen = argument ? argument : set("MEMD_SOCKET");
  int count = 0;
  if (chosen) {
    char *folder = *chosen == '/' ? NULL : getcwd(NULL, 0);
    snprintf(places[0], sizeof places[0], "%s%s%s", folder ? folder : "", folder ? "/" : "", chosen);
    free(folder);
    return 1;
  }
  if (absolute("XDG_RUNTIME_DIR")) snprintf(places[count++], sizeof places[0], "%s/memd/memd.sock", getenv("XDG_RUNTIME_DIR"));
  const char *state = absolute("XDG_STATE_HOME"), *home = absolute("HOME");
  if (!state && !home) {
    const struct passwd *user = getpwuid(geteuid());
    home = user ? user->pw_dir : "/";
  }
  snprintf(places[count++], sizeof places[0], "%s%s/memd/run/memd.sock", state ? state : home, state ? "" : "/.local/state");
  return count;
}

static bool trusted(const char *path) {
  struct stat found;
  return !stat(path, &found) && (found.st_uid == geteuid() || !found.st_uid) && !(found.st_mode & WRITABLE_BY_OTHERS);
}

/* MEMD_BIN, else the first memd in an entry of PATH that only we or root can have put there. */
static int find_memd(char *path, size_t size, memd_reply *reply) {
  const char *chosen = set("MEMD_BIN"), *rest = getenv("PATH");
  if (chosen) {
    if (*chosen != '/') return memd_fail(reply, MEMD_NOT_RUNNING, false, "memd is not running, and MEMD_BIN=%s is not an absolute path", chosen);
    snprintf(path, size, "%s", chosen);
    return MEMD_OK;
  }
  for (; rest && *rest; rest += strspn(rest, ":")) {
    int length = (int)strcspn(rest, ":");
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", length, rest);
    int written = snprintf(path, size, "%s/memd", folder);
    rest += length;
    if (*folder == '/' && written > 0 && (size_t)written < size && trusted(folder) && trusted(path) && !access(path, X_OK)) return MEMD_OK;
  }
  return memd_fail(reply, MEMD_NOT_RUNNING, false, "memd is not running, and no trusted memd is on PATH to start it; run `memd serve`, or set MEMD_BIN");
}

/* The child: a session of its own, and of our descriptors only the pipe. */
static void become(const char *program, const char *socket, int out) {
  setsid();
  int null = open("/dev/null", O_RDWR);
  if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(null, 2) < 0) _exit(127);
  execl(program, "memd", "socket", "--start", socket ? "--socket" : NULL, socket, NULL);
  _exit(127);
}

/* All that the command says, until it ends or the moment has come. */
static size_t read_all(int fd, char *text, size_t size, int64_t until) {
  size_t used = 0;
  while (used + 1 < size) {
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    int64_t left = until - memd_now();
    int found = poll(&ready, 1, left > 0 ? (int)left : 0);
    if (found < 0 && errno == EINTR) continue;
    if (found <= 0) break;
    ssize_t count = read(fd, text + used, size - 1 - used);
    if (count <= 0) break;
    used += (size_t)count;
  }
  while (used && (text[used - 1] == '\n' || text[used - 1] == ' ')) used--;
  text[used] = 0;
  return used;
}

int memd_start(const char *socket, int64_t until, char *path, size_t size, memd_reply *reply) {
  char program[PATH_MAX];
  int pipes[2], status = 0, code = find_memd(program, sizeof program, reply);
  if (code) return code;
  if (pipe2(pipes, O_CLOEXEC)) return memd_fail(reply, MEMD_NOT_RUNNING, false, "memd could not be started: %s", strerror(errno));
  pid_t child = fork();
  if (!child) become(program, socket, pipes[1]);
  close(pipes[1]);
  if (child < 0) {
    close(pipes[0]);
    return memd_fail(reply, MEMD_NOT_RUNNING, false, "memd could not be started: %s", strerror(errno));
  }
  int64_t limit = memd_now() + START_MS;
  size_t length = read_all(pipes[0], path, size, limit < until ? limit : until);
  close(pipes[0]);
  if (memd_now() >= (limit < until ? limit : until)) kill(child, SIGKILL);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (!length || !WIFEXITED(status) || WEXITSTATUS(status))
    return memd_fail(reply, MEMD_NOT_RUNNING, false, "memd is not running and %s could not start it (status %d)", program, status);
  return MEMD_OK;
}
