/* All tests of the C client: `make check`. */
#define _GNU_SOURCE
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memd.h"
#include "wire.h"

#undef assert /* also where NDEBUG is set */
#define assert(what) ((what) ? (void)0 : fail(#what, __LINE__))

static char home[64];

static void fail(const char *what, int line) {
  fprintf(stderr, "FAILED at line %d: %s\n", line, what);
  abort();
}

static void run(const char *verb) {
  char command[512];
  snprintf(command, sizeof command, "'%s' %s >/dev/null 2>&1", getenv("MEMD_BIN"), verb);
  if (system(command) < 0) abort();
}

static void new_home(void) {
  strcpy(home, "/tmp/memd-c-XXXXXX"); /* short: a socket's path has 107 bytes */
  assert(mkdtemp(home));
  setenv("HOME", home, 1);
}

static void end_home(void) {
  char command[128];
  run("stop");
  snprintf(command, sizeof command, "rm -rf '%s'", home);
  assert(!system(command));
}

static void add(memd_client *client, const char *text) {
  memd_reply reply;
  memd_params *params = memd_params_new();
  memd_put_str(params, "target", "memory");
  memd_put_str(params, "content", text);
  if (memd_call(client, "memory.add", params, &reply)) fprintf(stderr, "%s: %s\n", reply.name, reply.message);
  assert(reply.code == MEMD_OK && memd_bool(reply.result, "changed", false) && memd_is(reply.result, "entry.text", text));
  memd_reply_free(&reply);
}

static uint32_t entries(memd_client *client) {
  memd_reply reply;
  assert(!memd_call(client, "memory.read", NULL, &reply));
  const msgpack_object *found = memd_at(reply.result, "stores.memory.entries");
  assert(found && found->type == MSGPACK_OBJECT_ARRAY);
  uint32_t count = found->via.array.size;
  memd_reply_free(&reply);
  return count;
}

static pid_t daemon_pid(memd_client *client) {
  memd_reply reply;
  assert(!memd_call(client, "daemon.status", NULL, &reply));
  pid_t pid = (pid_t)memd_int(reply.result, "pid", memd_int(reply.result, "server.pid", 0));
  memd_reply_free(&reply);
  assert(pid > 1);
  return pid;
}

static void certified(memd_client *client) {
  memd_reply reply;
  if (memd_certify(client, &reply)) fprintf(stderr, "%s: %s\n", reply.name, reply.message);
  assert(!reply.code);
  memd_reply_free(&reply);
}

static void errors_are_typed(memd_client *client) {
  memd_reply reply;
  memd_params *params = memd_params_new();
  memd_put_str(params, "target", "memory");
  memd_put_str(params, "old_text", "nowhere");
  assert(memd_call(client, "memory.remove", params, &reply) == MEMD_NOT_FOUND);
  assert(!strcmp(reply.name, "not_found") && !strcmp(reply.outcome, "none") && *reply.message);
  memd_reply_free(&reply);
  assert(memd_call(client, "memory.nothing", NULL, &reply) == MEMD_METHOD_NOT_FOUND);
  memd_reply_free(&reply);
}

static void nobody_is_there(void) {
  struct memd_options options = {.no_autostart = true};
  memd_client *client = memd_new(&options);
  memd_reply reply;
  assert(memd_call(client, "rpc.ping", NULL, &reply) == MEMD_NOT_RUNNING && strstr(reply.message, "memd.sock"));
  memd_reply_free(&reply);
  memd_free(client);
}

static void a_deadline_holds(void) {
  struct memd_options options = {.timeout_ms = 3000};
  memd_client *client = memd_new(&options);
  memd_reply reply;
  memd_params *params = memd_params_new();
  memd_put_int(params, "timeout_ms", 600000);
  memd_put_packed(params, "topics", "\x91\xabjob.started", 13); /* nobody starts one */
  if (memd_call(client, "events.wait", params, &reply) != MEMD_TIMEOUT) fprintf(stderr, "%s: %s\n", reply.name, reply.message);
  assert(reply.code == MEMD_TIMEOUT);
  memd_reply_free(&reply);
  assert(!memd_call(client, "rpc.ping", NULL, &reply)); /* the connection stays */
  memd_reply_free(&reply);
  memd_free(client);
}

static void a_killed_daemon_loses_and_doubles_nothing(memd_client *client) {
  uint32_t before = entries(client);
  for (int number = 0; number < 30; number++) {
    char text[32];
    snprintf(text, sizeof text, "fact %d", number);
    add(client, text);
    if (number % 10 == 5) kill(daemon_pid(client), SIGKILL);
  }
  assert(entries(client) == before + 30);
}

static void events_go_on_after_a_restart(memd_client *client) {
  static const char *const topics[] = {MEMD_TOPIC_MEMORY_CHANGED};
  memd_reply reply;
  memd_events *events = memd_events_open(client, topics, 1, -1, &reply);
  assert(events);
  memd_reply_free(&reply);
  add(client, "before");
  run("stop");
  add(client, "after");
  int64_t last = 0;
  for (int seen = 0; seen < 2; seen++) {
    assert(!memd_events_next(events, 20000, &reply));
    assert(memd_is(reply.result, "topic", MEMD_TOPIC_MEMORY_CHANGED) && memd_int(reply.result, "seq", 0) > last);
    last = memd_int(reply.result, "seq", 0);
    memd_reply_free(&reply);
  }
  memd_events_close(events);
}

/* Feed bytes in pieces; how many messages came, the last one of them in storage. */
static int heard(const char *data, size_t size, size_t piece, int times, msgpack_unpacked *storage) {
  struct memd_wire wire;
  int count = 0;
  memd_wire_init(&wire);
  for (size_t at = 0; at < size * (size_t)times;) {
    size_t length = at + piece > size * (size_t)times ? size * (size_t)times - at : piece;
    assert(msgpack_unpacker_reserve_buffer(&wire.unpacker, length));
    for (size_t i = 0; i < length; i++) msgpack_unpacker_buffer(&wire.unpacker)[i] = data[(at + i) % size];
    msgpack_unpacker_buffer_consumed(&wire.unpacker, length);
    at += length;
    for (int found; (found = memd_wire_next(&wire, storage));) {
      if (found < 0) {
        msgpack_unpacker_destroy(&wire.unpacker);
        return -1;
      }
      count++;
      if (at == size * (size_t)times && count == times) break;
    }
  }
  msgpack_unpacker_destroy(&wire.unpacker);
  return count;
}

static const char *bytes(const msgpack_object *value, const char *path, size_t *size) {
  const msgpack_object *found = memd_at(value, path);
  assert(found && found->type == MSGPACK_OBJECT_BIN);
  *size = found->via.bin.size;
  return found->via.bin.ptr;
}

static void messages(const msgpack_object *vectors) {
  const msgpack_object *list = memd_at(vectors, "messages");
  int seen = 0;
  for (uint32_t i = 0; i < list->via.array.size; i++) {
    const msgpack_object *one = &list->via.array.ptr[i];
    if (!memd_is(one, "from", "server")) continue;
    seen++;
    size_t size;
    const char *data = bytes(one, "hex", &size);
    msgpack_unpacked storage;
    msgpack_unpacked_init(&storage);
    assert(heard(data, size, size, 1, &storage) == 1);
    assert(heard(data, size, 1, 1, &storage) == 1);
    assert(heard(data, size, 2 * size, 2, &storage) == 2);
    int64_t kind = memd_int(&storage.data, "0", -1);
    assert(kind == (memd_is(one, "gives", "notification") ? 2 : 1));
    assert(memd_is(one, "gives", "error") == (kind == 1 && memd_at(&storage.data, "2") != NULL));
    msgpack_unpacked_destroy(&storage);
  }
  assert(seen);
  msgpack_unpacked storage;
  msgpack_unpacked_init(&storage);
  assert(heard("\xc1", 1, 1, 1, &storage) < 0);
  msgpack_unpacked_destroy(&storage);
}

static void errors(const msgpack_object *vectors) {
  const msgpack_object *list = memd_at(vectors, "errors");
  for (uint32_t i = 0; i < list->via.array.size; i++) {
    const msgpack_object *one = &list->via.array.ptr[i];
    static const char *const forms[] = {"map.hex", "pair.hex"};
    for (int form = 0; form < 2; form++) {
      size_t size;
      const char *data = bytes(one, forms[form], &size);
      memd_reply reply;
      memd_reply_init(&reply);
      assert(heard(data, size, 1, 1, &reply.storage) == 1);
      memd_fail_from_wire(&reply, memd_at(&reply.storage.data, "2"));
      assert(*reply.message);
      if (!form) {
        assert(memd_is(one, "name", reply.name) && memd_int(one, "code", -9) == reply.code);
        assert(memd_bool(one, "retryable", false) == reply.retryable);
      }
      memd_reply_free(&reply);
    }
  }
}

static char *text_of(const msgpack_object *value, const char *path) {
  size_t size;
  const char *text = memd_text(value, path, &size);
  assert(text);
  return strndup(text, size);
}

static void collect(char *all, char *part) {
  strcat(all, part);
  free(part);
}

static void one_stream(const msgpack_object *one) {
  char *open = text_of(one, "fence.open"), *close = text_of(one, "fence.close"), *out = text_of(one, "out");
  memd_scrubber *scrubber = memd_scrubber_new(open, close);
  const msgpack_object *chunks = memd_at(one, "chunks"), *gives = memd_at(one, "gives");
  static char whole[1 << 16], cut[1 << 16];
  *whole = 0;
  for (uint32_t i = 0; i <= chunks->via.array.size; i++) {
    char *chunk = i < chunks->via.array.size ? text_of(&chunks->via.array.ptr[i], "") : NULL;
    char *found = chunk ? memd_scrubber_feed(scrubber, chunk) : memd_scrubber_close(scrubber);
    assert(memd_is(&gives->via.array.ptr[i], "", found));
    if (chunk) collect(whole, chunk);
    free(found);
  }
  for (size_t at = 0; at <= strlen(whole); at++) {
    char *before = strndup(whole, at);
    *cut = 0;
    collect(cut, memd_scrubber_feed(scrubber, before));
    collect(cut, memd_scrubber_feed(scrubber, whole + at));
    collect(cut, memd_scrubber_close(scrubber));
    free(before);
    assert(!strcmp(cut, out));
  }
  *cut = 0;
  for (size_t at = 0; whole[at]; at++) collect(cut, memd_scrubber_feed(scrubber, (char[]){whole[at], 0}));
  collect(cut, memd_scrubber_close(scrubber));
  assert(!strcmp(cut, out));
  memd_scrubber_free(scrubber);
  free(open), free(close), free(out);
}

static void scrubber(const msgpack_object *vectors) {
  const msgpack_object *streams = memd_at(vectors, "scrubber"), *recalled = memd_at(vectors, "fenced");
  for (uint32_t i = 0; i < streams->via.array.size; i++) one_stream(&streams->via.array.ptr[i]);
  for (uint32_t i = 0; i < recalled->via.array.size; i++) {
    const msgpack_object *one = &recalled->via.array.ptr[i];
    char *open = text_of(one, "fence.open"), *close = text_of(one, "fence.close"), *text = text_of(one, "text");
    char *found = memd_fenced(text, open, close);
    assert(memd_is(one, "out", found));
    free(open), free(close), free(text), free(found);
  }
  assert(!memd_scrubber_new("a", "ab"));
}

static void with_vectors(const char *path) {
  static char data[1 << 20];
  FILE *file = fopen(path, "rb");
  assert(file);
  size_t size = fread(data, 1, sizeof data, file);
  fclose(file);
  assert(size && size < sizeof data);
  msgpack_unpacked vectors;
  msgpack_unpacked_init(&vectors);
  assert(msgpack_unpack_next(&vectors, data, size, NULL) == MSGPACK_UNPACK_SUCCESS);
  messages(&vectors.data);
  errors(&vectors.data);
  scrubber(&vectors.data);
  msgpack_unpacked_destroy(&vectors);
}

int main(int count, char **arguments) {
  assert(count == 2 && getenv("MEMD_BIN"));
  static const char *const cleared[] = {"MEMD_SOCKET", "MEMD_AUTOSTART", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"};
  for (size_t i = 0; i < sizeof cleared / sizeof *cleared; i++) unsetenv(cleared[i]);
  with_vectors(arguments[1]);
  new_home();
  nobody_is_there();
  memd_client *client = memd_new(&(struct memd_options){.name = "c-test", .timeout_ms = 60000});
  certified(client);
  errors_are_typed(client);
  a_deadline_holds();
  a_killed_daemon_loses_and_doubles_nothing(client);
  events_go_on_after_a_restart(client);
  memd_free(client);
  end_home();
  puts("all tests of the C client passed");
  return 0;
}
