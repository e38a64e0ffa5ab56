/* The client: calls that survive a restart of the daemon. */
#define _GNU_SOURCE
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "wire.h"

enum { DEFAULT_MS = 10000, PAUSE_MS = 20, LONGEST_PAUSE_MS = 500 };
/* What the daemon's own answer about a deadline gets to arrive: it says more than our giving up. */
enum { MARGIN_MS = 250 };

struct memd_client {
  struct memd_options options;
  struct memd_wire wire;
  bool met; /* whether there has been a connection: a daemon that is gone is then probably coming back */
};

memd_client *memd_new(const struct memd_options *options) {
  memd_client *client = calloc(1, sizeof *client);
  if (!client) return NULL;
  if (options) client->options = *options;
  client->wire.fd = -1;
  return client;
}

void memd_free(memd_client *client) {
  if (!client) return;
  memd_wire_close(&client->wire);
  free(client);
}

int memd_timeout(const memd_client *client) { return client->options.timeout_ms ? client->options.timeout_ms : DEFAULT_MS; }

static int reach(memd_client *client, struct memd_wire *wire, int64_t until, bool may_start, memd_reply *reply) {
  const struct memd_options *options = &client->options;
  char places[2][512], path[512];
  int count = memd_places(options->socket, places), code = MEMD_NOT_RUNNING;
  for (int i = 0; i < count && code == MEMD_NOT_RUNNING; i++) code = memd_wire_dial(wire, places[i], until, reply);
  const char *autostart = getenv("MEMD_AUTOSTART");
  if (code != MEMD_NOT_RUNNING || !may_start || options->no_autostart || (autostart && !strcmp(autostart, "0"))) return code;
  code = memd_start(options->socket, until, path, sizeof path, reply);
  return code ? code : memd_wire_dial(wire, path, until, reply);
}

static memd_params *hello(const struct memd_options *options) {
  memd_params *params = memd_params_new(), *client = memd_params_new();
  memd_put_str(client, "name", options->name ? options->name : "memd-c");
  memd_put_str(client, "version", MEMD_VERSION);
  msgpack_sbuffer map;
  msgpack_sbuffer_init(&map);
  msgpack_packer packer;
  msgpack_packer_init(&packer, &map, msgpack_sbuffer_write);
  msgpack_pack_map(&packer, client->count);
  msgpack_sbuffer_write(&map, client->values.data, client->values.size);
  memd_put_packed(params, "client", map.data, map.size);
  msgpack_sbuffer_clear(&map);
  msgpack_pack_array(&packer, 2);
  msgpack_pack_int(&packer, MEMD_PROTOCOL);
  msgpack_pack_int(&packer, MEMD_PROTOCOL);
  memd_put_packed(params, "protocol", map.data, map.size);
  msgpack_sbuffer_destroy(&map);
  memd_params_free(client);
  memd_put_str(params, "profile", options->profile);
  memd_put_str(params, "context", options->context);
  memd_put_str(params, "access", options->access);
  return params;
}

int memd_open(memd_client *client, struct memd_wire *wire, int64_t until, bool may_start, memd_reply *reply) {
  int code = reach(client, wire, until, may_start, reply);
  if (code) return code;
  memd_params *params = hello(&client->options);
  code = memd_wire_call(wire, "hello", params, "", 0, 0, until, reply);
  memd_params_free(params);
  if (code) memd_wire_close(wire);
  if (code == MEMD_CONNECTION_LOST) reply->sent = false; /* nothing but hello was */
  return code;
}

/* Look, without waiting, whether the daemon has closed an idle connection: what is sent then is lost. */
static bool usable(struct memd_wire *wire) {
  char byte;
  if (wire->fd < 0) return false;
  if (recv(wire->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0) return true;
  memd_wire_close(wire);
  return false;
}

static void new_request_id(char id[40]) {
  unsigned char raw[16];
  if (getrandom(raw, sizeof raw, 0) != sizeof raw) abort(); /* the system's source of randomness is gone */
  raw[6] = (raw[6] & 15) | 64;
  raw[8] = (raw[8] & 63) | 128;
  for (int i = 0, at = 0; i < 16; i++) at += sprintf(id + at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", raw[i]);
}

/* The parameters that the client adds itself; how many. */
static size_t add_own(msgpack_sbuffer *own, const memd_params *params, int64_t until, const char *request_id) {
  memd_params *extra = memd_params_new();
  if (!params || !params->has_deadline) {
    int64_t left = until - memd_now();
    left -= left / 10 < MARGIN_MS ? left / 10 : MARGIN_MS;
    memd_put_int(extra, "deadline_ms", left > 0 ? left : 1);
  }
  if (*request_id) memd_put_str(extra, "request_id", request_id);
  msgpack_sbuffer_write(own, extra->values.data, extra->values.size);
  size_t count = extra->count;
  memd_params_free(extra);
  return count;
}

static int attempt(memd_client *client, const char *method, const memd_params *params, const char *request_id, int64_t until, memd_reply *reply) {
  if (!usable(&client->wire)) {
    int code = memd_open(client, &client->wire, until, true, reply);
    if (code) return code;
    client->met = true;
  }
  msgpack_sbuffer own;
  msgpack_sbuffer_init(&own);
  size_t count = add_own(&own, params, until, request_id);
  int code = memd_wire_call(&client->wire, method, params, own.data, own.size, count, until, reply);
  msgpack_sbuffer_destroy(&own);
  return code;
}

static bool again(memd_client *client, const memd_reply *reply, bool safe) {
  switch (reply->code) {
    case MEMD_NOT_RUNNING: return client->met;
    case MEMD_CONNECTION_LOST: return safe || !reply->sent;
    case MEMD_SHUTTING_DOWN: memd_wire_close(&client->wire); /* fall through */
    case MEMD_BUSY:
    case MEMD_TOO_MANY_REQUESTS: return safe || strcmp(reply->outcome, "unknown");
    default: return false;
  }
}

/* Say what is known of a mutation over all attempts. A reply about the mutation itself is the last word. */
static int last_word(memd_reply *reply, const char *request_id, bool doubt) {
  bool passing = reply->code < 0 || reply->code == MEMD_SHUTTING_DOWN || reply->code == MEMD_BUSY || reply->code == MEMD_TOO_MANY_REQUESTS;
  if (*request_id && passing) {
    bool unknown = doubt || !strcmp(reply->outcome, "unknown");
    strcpy(reply->outcome, unknown ? "unknown" : "none");
  }
  return reply->code;
}

static int call(memd_client *client, const char *method, const memd_params *params, memd_reply *reply) {
  const struct memd_method *known = memd_method(method);
  bool mutation = known && known->mutation, doubt = false; /* whether the daemon may have carried out an earlier attempt */
  char request_id[40] = "";
  if (mutation && !(params && params->has_request_id)) new_request_id(request_id);
  int64_t until = memd_now() + memd_timeout(client);
  for (int pause = PAUSE_MS;; pause = 2 * pause < LONGEST_PAUSE_MS ? 2 * pause : LONGEST_PAUSE_MS) {
    int code = attempt(client, method, params, request_id, until, reply);
    strcpy(reply->request_id, request_id);
    if (!code) return MEMD_OK;
    if (doubt && code == MEMD_NO_SUCH_SESSION && !strcmp(method, "session.close")) return reply->code = MEMD_OK; /* by the attempt before */
    doubt |= reply->sent;
    if (!again(client, reply, known && (mutation || known->repeatable)) || memd_now() + pause >= until) return last_word(reply, request_id, doubt);
    poll(NULL, 0, pause);
  }
}

int memd_call(memd_client *client, const char *method, memd_params *params, memd_reply *reply) {
  memd_reply_init(reply);
  int code = call(client, method, params, reply);
  memd_params_free(params);
  return code;
}

static memd_params *handed_on(const msgpack_object *given, const char *value) {
  memd_params *params = memd_params_new();
  memd_put_object(params, "id", memd_at(given, "id"));
  memd_put_object(params, "value", memd_at(given, value));
  return params;
}

int memd_certify(memd_client *client, memd_reply *reply) {
  static const char *const steps[] = {"rpc.certify.flag", "rpc.certify.ints",  "rpc.certify.texts", "rpc.certify.lists",
                                      "rpc.certify.maps", "rpc.certify.error", "rpc.certify.end"};
  int code = memd_call(client, "rpc.certify.start", NULL, reply);
  for (size_t i = 0; i < sizeof steps / sizeof *steps && !code; i++) {
    memd_params *params = handed_on(reply->code ? reply->data : reply->result, "value");
    memd_reply_free(reply);
    code = memd_call(client, steps[i], params, reply);
    if (code == MEMD_CONFLICT && i == 5) code = MEMD_OK; /* this step fails on purpose */
  }
  if (code || memd_is(reply->result, "value", "certified")) return code;
  return memd_fail(reply, MEMD_INVALID_REPLY, true, "the daemon did not certify this client");
}
