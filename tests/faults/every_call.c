/* Preloaded into a process: numbers its system calls on files below one directory, and fails or ends at one of them; or
   writes down, in order, every one that changes what a disk holds.

   Everything the commit path and SQLite ask of the kernel goes through libc, so that a call is met wherever it is made.
   `fault_arm(n, error, times)`: the n-th call from now fails with `error`, and `times - 1` after it; an error of 0 ends the
   process there, before the call is made. Calls are counted between `fault_arm` and `fault_disarm` only.

   `fault_record(path)`: from now on each change that succeeded is appended there, as a line of words and, after a write, its
   bytes. Files go by their inodes, names by their paths; `support/power.py` reads it. */
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

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int record = -1;

static void put(const void *bytes, size_t size)
{
	if (REAL(write)(record, bytes, size) != (ssize_t)size)
		_exit(3);
}

static void say(const char *format, ...)
{
	char line[3 * PATH_MAX];
	va_list rest;
	int size;
	if (record < 0)
		return;
	va_start(rest, format);
	size = vsnprintf(line, sizeof line, format, rest);
	va_end(rest);
	put(line, size);
}

void fault_record(const char *path)
{
	record = REAL(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

void fault_note(const char *text) { say("note %s\n", text); }

static int path_of(int descriptor, char *path)
{
	char link[64];
	ssize_t size;
	snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
	size = readlink(link, path, PATH_MAX - 1);
	if (size <= 0)
		return 0;
	path[size] = 0;
	return below(path);
}

static unsigned long inode_of(int descriptor)
{
	struct stat status;
	return fstat(descriptor, &status) ? 0 : status.st_ino;
}

static void opened(const char *path, int descriptor, int flags, int existed)
{
	if (record < 0 || descriptor < 0 || !below(path))
		return;
	if (!existed)
		say("create %lu %s\n", inode_of(descriptor), path + root_length);
	else if (flags & O_TRUNC)
		say("truncate %lu 0\n", inode_of(descriptor));
}

static void wrote(int descriptor, const void *bytes, ssize_t size, off_t at)
{
	char path[PATH_MAX];
	if (record < 0 || size <= 0 || !path_of(descriptor, path))
		return;
	say("write %lu %ld %zd\n", inode_of(descriptor), (long)at, size);
	put(bytes, size);
}

static void cut(int descriptor, int result, off_t size)
{
	char path[PATH_MAX];
	if (record >= 0 && !result && path_of(descriptor, path))
		say("truncate %lu %ld\n", inode_of(descriptor), (long)size);
}

static void synced(int descriptor, int result)
{
	char path[PATH_MAX];
	if (record >= 0 && !result && path_of(descriptor, path))
		say("sync %lu %s\n", inode_of(descriptor), path + root_length);
}

static void renamed(const char *how, const char *from, const char *to, int result)
{
	if (record >= 0 && !result && below(to))
		say("%s %s\t%s\n", how, from + root_length, to + root_length);
}

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
	char path[PATH_MAX];
	return armed && path_of(descriptor, path) && strikes(call, path);
}

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
		if (strikes("open", path))                          \
			return -1;                                  \
		int existed = !access(path, F_OK);                  \
		int descriptor = REAL(name)(path, flags, mode);     \
		opened(path, descriptor, flags, existed);           \
		return descriptor;                                  \
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
		if (strikes("open", path))                          \
			return -1;                                  \
		int existed = !access(path, F_OK);                  \
		int descriptor = REAL(name)(at, path, flags, mode); \
		opened(path, descriptor, flags, existed);           \
		return descriptor;                                  \
	}
OPENAT(openat)
OPENAT(openat64)

#define ON_DESCRIPTOR(type, name, word, parameters, done, ...)      \
	type name parameters                                        \
	{                                                           \
		if (strikes_open(word, fd))                         \
			return -1;                                  \
		type result = REAL(name)(__VA_ARGS__);              \
		done;                                               \
		return result;                                      \
	}
ON_DESCRIPTOR(ssize_t, read, "read", (int fd, void *to, size_t size), , fd, to, size)
ON_DESCRIPTOR(ssize_t, pread, "read", (int fd, void *to, size_t size, off_t at), , fd, to, size, at)
ON_DESCRIPTOR(ssize_t, pread64, "read", (int fd, void *to, size_t size, off64_t at), , fd, to, size, at)
ON_DESCRIPTOR(ssize_t, write, "write", (int fd, const void *from, size_t size),
	      wrote(fd, from, result, lseek(fd, 0, SEEK_CUR) - result), fd, from, size)
ON_DESCRIPTOR(ssize_t, pwrite, "write", (int fd, const void *from, size_t size, off_t at), wrote(fd, from, result, at), fd,
	      from, size, at)
ON_DESCRIPTOR(ssize_t, pwrite64, "write", (int fd, const void *from, size_t size, off64_t at), wrote(fd, from, result, at),
	      fd, from, size, at)
ON_DESCRIPTOR(int, fsync, "fsync", (int fd), synced(fd, result), fd)
ON_DESCRIPTOR(int, fdatasync, "fsync", (int fd), synced(fd, result), fd)
ON_DESCRIPTOR(int, ftruncate, "truncate", (int fd, off_t size), cut(fd, result, size), fd, size)
ON_DESCRIPTOR(int, ftruncate64, "truncate", (int fd, off64_t size), cut(fd, result, size), fd, size)
ON_DESCRIPTOR(int, flock, "lock", (int fd, int how), , fd, how)
ON_DESCRIPTOR(int, fchmod, "chmod", (int fd, mode_t mode), , fd, mode)
ON_DESCRIPTOR(int, fchown, "chown", (int fd, uid_t uid, gid_t gid), , fd, uid, gid)

#define ON_PATH(name, word, seen, parameters, done, ...)            \
	int name parameters                                         \
	{                                                           \
		if (strikes(word, seen))                            \
			return -1;                                  \
		int result = REAL(name)(__VA_ARGS__);               \
		done;                                               \
		return result;                                      \
	}
ON_PATH(rename, "rename", to, (const char *from, const char *to), renamed("rename", from, to, result), from, to)
ON_PATH(renameat, "rename", to, (int a, const char *from, int b, const char *to), renamed("rename", from, to, result), a,
	from, b, to)
ON_PATH(renameat2, "rename", to, (int a, const char *from, int b, const char *to, unsigned how),
	renamed(how & RENAME_EXCHANGE ? "exchange" : "rename", from, to, result), a, from, b, to, how)
ON_PATH(link, "link", to, (const char *from, const char *to), renamed("link", from, to, result), from, to)
ON_PATH(linkat, "link", to, (int a, const char *from, int b, const char *to, int how), renamed("link", from, to, result), a,
	from, b, to, how)
ON_PATH(unlink, "unlink", path, (const char *path), result || !below(path) ? (void)0 : say("unlink %s\n", path + root_length),
	path)
ON_PATH(unlinkat, "unlink", path, (int at, const char *path, int how), , at, path, how)
ON_PATH(mkdir, "mkdir", path, (const char *path, mode_t mode),
	result || !below(path) ? (void)0 : say("mkdir %s\n", path + root_length), path, mode)
