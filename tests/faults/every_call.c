/* Preloaded into a process: numbers its system calls on files below one directory, and fails or ends at one of them.

   Everything the commit path and SQLite ask of the kernel goes through libc, so that a call is met wherever it is made.
   `fault_arm(n, error, times)`: the n-th call from now fails with `error`, and `times - 1` after it; an error of 0 ends the
   process there, before the call is made. Calls are counted between `fault_arm` and `fault_disarm` only. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static char root[PATH_MAX];
static char struck[PATH_MAX + 32];
static size_t root_length;
static long counted, first;
static int armed, wanted, left;

void fault_root(const char *path)
{
	strncpy(root, path, sizeof root - 1);
	root_length = strlen(root);
}

void fault_arm(long number, int error, int times)
{
	counted = 0;
	first = number;
	wanted = error;
	left = times;
	struck[0] = 0;
	armed = 1;
}

void fault_pause(int on) { armed = !on; }

long fault_disarm(void)
{
	armed = 0;
	return counted;
}

const char *fault_struck(void) { return struck; }

static int below(const char *path) { return path && root_length && !strncmp(path, root, root_length); }

static int strikes(const char *call, const char *path)
{
	if (!armed || !below(path))
		return 0;
	counted++;
	if (counted < first || left <= 0)
		return 0;
	left--;
	if (!struck[0])
		snprintf(struck, sizeof struck, "%s %s", call, path + root_length);
	if (!wanted)
		_exit(137);
	errno = wanted;
	return 1;
}

static int strikes_open(const char *call, int descriptor)
{
	char link[64], path[PATH_MAX];
	ssize_t size;
	if (!armed)
		return 0;
	snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
	size = readlink(link, path, sizeof path - 1);
	if (size <= 0)
		return 0;
	path[size] = 0;
	return strikes(call, path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define OPEN(name)                                                  \
	int name(const char *path, int flags, ...)                  \
	{                                                           \
		mode_t mode = 0;                                    \
		if (flags & (O_CREAT | __O_TMPFILE)) {              \
			va_list rest;                               \
			va_start(rest, flags);                      \
			mode = va_arg(rest, mode_t);                \
			va_end(rest);                               \
		}                                                   \
		return strikes("open", path) ? -1 : REAL(name)(path, flags, mode); \
	}
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                \
	int name(int at, const char *path, int flags, ...)          \
	{                                                           \
		mode_t mode = 0;                                    \
		if (flags & (O_CREAT | __O_TMPFILE)) {              \
			va_list rest;                               \
			va_start(rest, flags);                      \
			mode = va_arg(rest, mode_t);                \
			va_end(rest);                               \
		}                                                   \
		return strikes("open", path) ? -1 : REAL(name)(at, path, flags, mode); \
	}
OPENAT(openat)
OPENAT(openat64)

#define ON_DESCRIPTOR(type, name, word, parameters, ...)            \
	type name parameters { return strikes_open(word, fd) ? -1 : REAL(name)(__VA_ARGS__); }
ON_DESCRIPTOR(ssize_t, read, "read", (int fd, void *to, size_t size), fd, to, size)
ON_DESCRIPTOR(ssize_t, pread, "read", (int fd, void *to, size_t size, off_t at), fd, to, size, at)
ON_DESCRIPTOR(ssize_t, pread64, "read", (int fd, void *to, size_t size, off64_t at), fd, to, size, at)
ON_DESCRIPTOR(ssize_t, write, "write", (int fd, const void *from, size_t size), fd, from, size)
ON_DESCRIPTOR(ssize_t, pwrite, "write", (int fd, const void *from, size_t size, off_t at), fd, from, size, at)
ON_DESCRIPTOR(ssize_t, pwrite64, "write", (int fd, const void *from, size_t size, off64_t at), fd, from, size, at)
ON_DESCRIPTOR(int, fsync, "fsync", (int fd), fd)
ON_DESCRIPTOR(int, fdatasync, "fsync", (int fd), fd)
ON_DESCRIPTOR(int, ftruncate, "truncate", (int fd, off_t size), fd, size)
ON_DESCRIPTOR(int, ftruncate64, "truncate", (int fd, off64_t size), fd, size)
ON_DESCRIPTOR(int, flock, "lock", (int fd, int how), fd, how)
ON_DESCRIPTOR(int, fchmod, "chmod", (int fd, mode_t mode), fd, mode)
ON_DESCRIPTOR(int, fchown, "chown", (int fd, uid_t uid, gid_t gid), fd, uid, gid)

#define ON_PATH(name, word, seen, parameters, ...)                  \
	int name parameters { return strikes(word, seen) ? -1 : REAL(name)(__VA_ARGS__); }
ON_PATH(rename, "rename", to, (const char *from, const char *to), from, to)
ON_PATH(renameat, "rename", to, (int a, const char *from, int b, const char *to), a, from, b, to)
ON_PATH(renameat2, "rename", to, (int a, const char *from, int b, const char *to, unsigned how), a, from, b, to, how)
ON_PATH(link, "link", to, (const char *from, const char *to), from, to)
ON_PATH(linkat, "link", to, (int a, const char *from, int b, const char *to, int how), a, from, b, to, how)
ON_PATH(unlink, "unlink", path, (const char *path), path)
ON_PATH(unlinkat, "unlink", path, (int at, const char *path, int how), at, path, how)
ON_PATH(mkdir, "mkdir", path, (const char *path, mode_t mode), path, mode)
