/* Preloaded into a process: numbers its system calls on files below one directory, and fails or ends at one of them; or
   writes down, in order, every one that changes what a disk holds.

   Everything the commit path and SQLite ask of the kernel goes through libc, so that a call is met wherever it is made.
   `fault_arm(n, error, times)`: the n-th call from now fails with `error`, and `times - 1` after it; an error of 0 ends the
   process there, before the call is made. Calls are counted between `fault_arm` and `fault_disarm` only; while that is so the
   library itself asks the kernel for nothing but links below /proc and the two marks, so that the kernel's own count is the same.

   `fault_record(path)`: from now on each change that succeeded is appended there, as a line of words and, after a write, its
   bytes. Files go by their inodes, names by their paths; `support/power.py` reads it. */
#define _GNU_SOURCE
#include <dirent.h>
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
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

/* The call itself, as libc has it. */
#define REAL(name)                                                         \
	({                                                                 \
		static __typeof__(&name) real_##name;                      \
		if (!real_##name)                                          \
			real_##name = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
		real_##name;                                               \
	})

static char root[PATH_MAX];
static char struck[PATH_MAX + 32];
static size_t root_length;
static long counted, first;
static int armed, wanted, left, record = -1;

/* -- what the tests call ------------------------------------------------------------------------------------------------- */

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
	REAL(access)("/fault-armed", F_OK); /* for who follows the process from outside */
	armed = 1;
}

void fault_pause(int on)
{
	REAL(access)(on ? "/fault-disarmed" : "/fault-armed", F_OK);
	armed = !on;
}

long fault_disarm(void)
{
	armed = 0;
	REAL(access)("/fault-disarmed", F_OK);
	return counted;
}

const char *fault_struck(void) { return struck; }

void fault_record(const char *path)
{
	record = REAL(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* -- which file a call is about ------------------------------------------------------------------------------------------ */

static int below(const char *path)
{
	return path && root_length && !strncmp(path, root, root_length) && (!path[root_length] || path[root_length] == '/');
}

static int path_of(int descriptor, char *path)
{
	char link[64];
	ssize_t size;
	snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
	size = REAL(readlink)(link, path, PATH_MAX - 1);
	if (size <= 0)
		return 0;
	path[size] = 0;
	return below(path);
}

/* The absolute path of a name in an open directory; `path` itself where it is absolute or has no directory. */
static const char *absolute(int at, const char *path, char *whole)
{
	size_t size;
	if (!path || path[0] == '/' || at == AT_FDCWD || !path_of(at, whole))
		return path;
	size = strlen(whole);
	if (path[0])
		snprintf(whole + size, PATH_MAX - size, "/%s", path);
	return whole;
}

/* -- failing ------------------------------------------------------------------------------------------------------------- */

static int strikes(const char *call, const char *path)
{
	if (!armed || !below(path))
		return 0;
	counted++;
	if (counted < first || left <= 0)
		return 0;
	left--;
	if (!struck[0])
		snprintf(struck, sizeof struck, "%s %s", call, path[root_length] ? path + root_length : "/");
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

static int strikes_at(const char *call, int at, const char *path)
{
	char whole[PATH_MAX];
	return armed && strikes(call, absolute(at, path, whole));
}

/* -- writing down -------------------------------------------------------------------------------------------------------- */

static void put(const void *bytes, size_t size)
{
	if (REAL(write)(record, bytes, size) != (ssize_t)size)
		_exit(3);
}

static void say(const char *format, ...)
{
	char line[3 * PATH_MAX];
	va_list rest;
	if (record < 0)
		return;
	va_start(rest, format);
	put(line, vsnprintf(line, sizeof line, format, rest));
	va_end(rest);
}

void fault_note(const char *text) { say("note %s\n", text); }

static struct stat status_of(int descriptor)
{
	struct stat status;
	if (REAL(fstat)(descriptor, &status))
		_exit(3);
	return status;
}

static int recorded(int descriptor, char *path) { return record >= 0 && path_of(descriptor, path); }

static void opened(const char *path, int descriptor, int flags, int existed)
{
	if (record < 0 || descriptor < 0 || !below(path))
		return;
	if (!existed)
		say("create %lu %s\n", status_of(descriptor).st_ino, path + root_length);
	else if (flags & O_TRUNC)
		say("truncate %lu 0\n", status_of(descriptor).st_ino);
}

static void wrote(int descriptor, const void *bytes, ssize_t size, off_t at)
{
	char path[PATH_MAX];
	if (size <= 0 || !recorded(descriptor, path))
		return;
	if (at < 0) /* where the descriptor stood */
		at = REAL(lseek)(descriptor, 0, SEEK_CUR) - size;
	say("write %lu %ld %zd\n", status_of(descriptor).st_ino, (long)at, size);
	put(bytes, size);
}

/* The file has another size, or the same. */
static void sized(int descriptor, int failed)
{
	char path[PATH_MAX];
	if (!failed && recorded(descriptor, path))
		say("truncate %lu %ld\n", status_of(descriptor).st_ino, (long)status_of(descriptor).st_size);
}

static void synced(int descriptor, int failed)
{
	char path[PATH_MAX];
	if (!failed && recorded(descriptor, path))
		say("sync %lu %s\n", status_of(descriptor).st_ino, path + root_length);
}

static void renamed(const char *how, const char *from, const char *to, int failed)
{
	if (!failed && below(to))
		say("%s %s\t%s\n", how, from + root_length, to + root_length);
}

static void named(const char *how, int at, const char *path, int failed)
{
	char whole[PATH_MAX];
	const char *found = record >= 0 && !failed ? absolute(at, path, whole) : NULL;
	if (below(found))
		say("%s %s\n", how, found + root_length);
}

/* -- the calls ----------------------------------------------------------------------------------------------------------- */

/* A call of libc: where `strike` says so it is not made and `failed` returned, else `done` sees its `result`. */
#define CALL(type, failed, name, strike, parameters, done, ...)     \
	type name parameters                                        \
	{                                                           \
		if (strike)                                         \
			return failed;                              \
		type result = REAL(name)(__VA_ARGS__);              \
		done;                                               \
		return result;                                      \
	}
#define ON_OPEN(type, name, word, parameters, done, ...) \
	CALL(type, -1, name, strikes_open(word, fd), parameters, done, __VA_ARGS__)
#define ON_PATH(type, name, word, parameters, done, ...) \
	CALL(type, -1, name, strikes(word, path), parameters, done, __VA_ARGS__)
#define ON_NAME(type, name, word, parameters, done, ...) \
	CALL(type, -1, name, strikes_at(word, at, path), parameters, done, __VA_ARGS__)

/* Two of the calls take a mode only with some flags, one an argument of a kind that depends on the command. */
#define OPEN(name, at, parameters, ...)                                     \
	int name parameters                                                 \
	{                                                                   \
		char whole[PATH_MAX];                                       \
		mode_t mode = 0;                                            \
		int existed = 1;                                            \
		if (flags & (O_CREAT | __O_TMPFILE)) {                      \
			va_list rest;                                       \
			va_start(rest, flags);                              \
			mode = va_arg(rest, mode_t);                        \
			va_end(rest);                                       \
		}                                                           \
		if (strikes_at("open", at, path))                           \
			return -1;                                          \
		if (record >= 0)                                            \
			existed = !REAL(faccessat)(at, path, F_OK, AT_SYMLINK_NOFOLLOW); \
		int result = REAL(name)(__VA_ARGS__, mode);                 \
		if (record >= 0)                                            \
			opened(absolute(at, path, whole), result, flags, existed); \
		return result;                                              \
	}
OPEN(open, AT_FDCWD, (const char *path, int flags, ...), path, flags)
OPEN(open64, AT_FDCWD, (const char *path, int flags, ...), path, flags)
OPEN(openat, at, (int at, const char *path, int flags, ...), at, path, flags)
OPEN(openat64, at, (int at, const char *path, int flags, ...), at, path, flags)

/* What a program that was built with _FORTIFY_SOURCE calls instead: its buffers are checked, and the same is asked. */
#define CHECKED(type, checked, parameters, same) \
	type checked parameters;                 \
	type checked parameters                  \
	{                                        \
		return same;                     \
	}
CHECKED(int, __open_2, (const char *path, int flags), open(path, flags))
CHECKED(int, __open64_2, (const char *path, int flags), open64(path, flags))
CHECKED(int, __openat_2, (int at, const char *path, int flags), openat(at, path, flags))
CHECKED(int, __openat64_2, (int at, const char *path, int flags), openat64(at, path, flags))
CHECKED(ssize_t, __read_chk, (int fd, void *to, size_t size, size_t), read(fd, to, size))
CHECKED(ssize_t, __pread_chk, (int fd, void *to, size_t size, off_t from, size_t), pread(fd, to, size, from))
CHECKED(ssize_t, __pread64_chk, (int fd, void *to, size_t size, off64_t from, size_t), pread64(fd, to, size, from))
CHECKED(ssize_t, __readlink_chk, (const char *path, char *to, size_t size, size_t), readlink(path, to, size))
CHECKED(ssize_t, __readlinkat_chk, (int at, const char *path, char *to, size_t size, size_t), readlinkat(at, path, to, size))

static int locks(int command)
{
	switch (command) {
	case F_GETLK:
	case F_SETLK:
	case F_SETLKW:
	case F_OFD_GETLK:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
		return 1;
	}
	return 0;
}

#define FCNTL(name)                                                 \
	int name(int fd, int command, ...)                          \
	{                                                           \
		va_list rest;                                       \
		void *argument;                                     \
		va_start(rest, command);                            \
		argument = va_arg(rest, void *);                    \
		va_end(rest);                                       \
		if (locks(command) && strikes_open("lock", fd))     \
			return -1;                                  \
		return REAL(name)(fd, command, argument);           \
	}
FCNTL(fcntl)
FCNTL(fcntl64)

/* The descriptor is gone whatever close says. */
int close(int fd)
{
	int fails = strikes_open("close", fd);
	int result = REAL(close)(fd);
	if (!fails)
		return result;
	errno = wanted;
	return -1;
}

ON_OPEN(int, flock, "lock", (int fd, int how), , fd, how)
ON_OPEN(ssize_t, read, "read", (int fd, void *to, size_t size), , fd, to, size)
ON_OPEN(ssize_t, pread, "read", (int fd, void *to, size_t size, off_t from), , fd, to, size, from)
ON_OPEN(ssize_t, pread64, "read", (int fd, void *to, size_t size, off64_t from), , fd, to, size, from)
ON_OPEN(ssize_t, write, "write", (int fd, const void *data, size_t size), wrote(fd, data, result, -1), fd, data, size)
ON_OPEN(ssize_t, pwrite, "write", (int fd, const void *data, size_t size, off_t to), wrote(fd, data, result, to), fd, data,
	size, to)
ON_OPEN(ssize_t, pwrite64, "write", (int fd, const void *data, size_t size, off64_t to), wrote(fd, data, result, to), fd,
	data, size, to)
ON_OPEN(int, fsync, "fsync", (int fd), synced(fd, result), fd)
ON_OPEN(int, fdatasync, "fsync", (int fd), synced(fd, result), fd)
ON_OPEN(int, ftruncate, "truncate", (int fd, off_t size), sized(fd, result), fd, size)
ON_OPEN(int, ftruncate64, "truncate", (int fd, off64_t size), sized(fd, result), fd, size)
ON_OPEN(int, fallocate, "allocate", (int fd, int how, off_t from, off_t size), sized(fd, result), fd, how, from,
	size)
ON_OPEN(int, fallocate64, "allocate", (int fd, int how, off64_t from, off64_t size), sized(fd, result), fd, how,
	from, size)
CALL(int, wanted, posix_fallocate, strikes_open("allocate", fd), (int fd, off_t from, off_t size),
     sized(fd, result), fd, from, size)
CALL(int, wanted, posix_fallocate64, strikes_open("allocate", fd), (int fd, off64_t from, off64_t size),
     sized(fd, result), fd, from, size)
ON_OPEN(int, fchmod, "chmod", (int fd, mode_t mode), , fd, mode)
ON_PATH(int, chmod, "chmod", (const char *path, mode_t mode), , path, mode)
ON_NAME(int, fchmodat, "chmod", (int at, const char *path, mode_t mode, int how), , at, path, mode, how)
ON_OPEN(int, fchown, "chown", (int fd, uid_t uid, gid_t gid), , fd, uid, gid)
ON_PATH(int, chown, "chown", (const char *path, uid_t uid, gid_t gid), , path, uid, gid)
ON_PATH(int, lchown, "chown", (const char *path, uid_t uid, gid_t gid), , path, uid, gid)
ON_NAME(int, fchownat, "chown", (int at, const char *path, uid_t uid, gid_t gid, int how), , at, path, uid, gid, how)

ON_OPEN(int, fstat, "stat", (int fd, struct stat *to), , fd, to)
ON_OPEN(int, fstat64, "stat", (int fd, struct stat64 *to), , fd, to)
ON_PATH(int, stat, "stat", (const char *path, struct stat *to), , path, to)
ON_PATH(int, stat64, "stat", (const char *path, struct stat64 *to), , path, to)
ON_PATH(int, lstat, "stat", (const char *path, struct stat *to), , path, to)
ON_PATH(int, lstat64, "stat", (const char *path, struct stat64 *to), , path, to)
ON_NAME(int, fstatat, "stat", (int at, const char *path, struct stat *to, int how), , at, path, to, how)
ON_NAME(int, fstatat64, "stat", (int at, const char *path, struct stat64 *to, int how), , at, path, to, how)
ON_NAME(int, statx, "stat", (int at, const char *path, int how, unsigned mask, struct statx *to), , at, path, how, mask, to)
ON_PATH(int, access, "access", (const char *path, int mode), , path, mode)
ON_NAME(int, faccessat, "access", (int at, const char *path, int mode, int how), , at, path, mode, how)
ON_PATH(ssize_t, readlink, "link", (const char *path, char *to, size_t size), , path, to, size)
ON_NAME(ssize_t, readlinkat, "link", (int at, const char *path, char *to, size_t size), , at, path, to, size)

CALL(DIR *, NULL, opendir, strikes("list", path), (const char *path), , path)
CALL(DIR *, NULL, fdopendir, strikes_open("list", fd), (int fd), , fd)
CALL(struct dirent *, NULL, readdir, strikes_open("list", dirfd(from)), (DIR *from), , from)
CALL(struct dirent64 *, NULL, readdir64, strikes_open("list", dirfd(from)), (DIR *from), , from)

ON_OPEN(ssize_t, flistxattr, "attribute", (int fd, char *to, size_t size), , fd, to, size)
ON_PATH(ssize_t, listxattr, "attribute", (const char *path, char *to, size_t size), , path, to, size)
ON_PATH(ssize_t, llistxattr, "attribute", (const char *path, char *to, size_t size), , path, to, size)
ON_OPEN(ssize_t, fgetxattr, "attribute", (int fd, const char *name, void *to, size_t size), , fd, name, to, size)
ON_PATH(ssize_t, getxattr, "attribute", (const char *path, const char *name, void *to, size_t size), , path, name, to, size)
ON_PATH(ssize_t, lgetxattr, "attribute", (const char *path, const char *name, void *to, size_t size), , path, name, to, size)
ON_OPEN(int, fsetxattr, "attribute", (int fd, const char *name, const void *from, size_t size, int how), , fd, name, from,
	size, how)
ON_PATH(int, setxattr, "attribute", (const char *path, const char *name, const void *from, size_t size, int how), , path,
	name, from, size, how)
ON_PATH(int, lsetxattr, "attribute", (const char *path, const char *name, const void *from, size_t size, int how), , path,
	name, from, size, how)
ON_OPEN(int, fremovexattr, "attribute", (int fd, const char *name), , fd, name)
ON_PATH(int, removexattr, "attribute", (const char *path, const char *name), , path, name)
ON_PATH(int, lremovexattr, "attribute", (const char *path, const char *name), , path, name)

ON_PATH(int, rename, "rename", (const char *from, const char *path), renamed("rename", from, path, result), from, path)
ON_NAME(int, renameat, "rename", (int a, const char *from, int at, const char *path), renamed("rename", from, path, result),
	a, from, at, path)
ON_NAME(int, renameat2, "rename", (int a, const char *from, int at, const char *path, unsigned how),
	renamed(how & RENAME_EXCHANGE ? "exchange" : "rename", from, path, result), a, from, at, path, how)
ON_PATH(int, link, "link", (const char *from, const char *path), renamed("link", from, path, result), from, path)
ON_NAME(int, linkat, "link", (int a, const char *from, int at, const char *path, int how),
	renamed("link", from, path, result), a, from, at, path, how)
ON_PATH(int, symlink, "link", (const char *from, const char *path), , from, path)
ON_PATH(int, unlink, "unlink", (const char *path), named("unlink", AT_FDCWD, path, result), path)
ON_NAME(int, unlinkat, "unlink", (int at, const char *path, int how), named("unlink", at, path, result), at, path, how)
ON_PATH(int, rmdir, "unlink", (const char *path), named("unlink", AT_FDCWD, path, result), path)
ON_PATH(int, mkdir, "mkdir", (const char *path, mode_t mode), named("mkdir", AT_FDCWD, path, result), path, mode)
ON_NAME(int, mkdirat, "mkdir", (int at, const char *path, mode_t mode), named("mkdir", at, path, result), at, path, mode)
