/* Events as they happen, over restarts of the daemon. */
#define _GNU_SOURCE
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

enum { PAUSE_MS = 100 };

struct memd_events {
  memd_client *client;
  msgpack_sbuffer topics;
  int64_t since;
  bool lost; /* the journal does not reach back to where we were */
  struct memd_wire wire;
};

static int subscribe(memd_events *events, int64_t until, bool may_start, memd_reply *reply) {
  int code = memd_open(events->client, &events->wire, until, may_start, reply);
  if (code) return code;
  memd_params *params = memd_params_new();
  memd_put_packed(params, "topics", events->topics.data, events->topics.size);
  if (events->since >= 0) memd_put_int(params, "since_seq", events->since);
  code = memd_wire_call(&events->wire, "events.subscribe", params, "", 0, 0, until, reply);
  memd_params_free(params);
  if (code) {
    memd_wire_close(&events->wire);
    return code;
  }
  events->lost = memd_bool(reply->result, "lost", false);
  if (events->since < 0) events->since = memd_int(reply->result, "seq", 0);
  return MEMD_OK;
}

memd_events *memd_events_open(memd_client *client, const char *const *topics, size_t count, int64_t since, memd_reply *reply) {
  memd_events *events = calloc(1, sizeof *events);
  if (!events) abort();
  events->client = client;
  events->since = since;
  events->wire.fd = -1;
  msgpack_sbuffer_init(&events->topics);
  msgpack_packer packer;
  msgpack_packer_init(&packer, &events->topics, msgpack_sbuffer_write);
  msgpack_pack_array(&packer, count);
  for (size_t i = 0; i < count; i++) {
    msgpack_pack_str(&packer, strlen(topics[i]));
    msgpack_pack_str_body(&packer, topics[i], strlen(topics[i]));
  }
  memd_reply_init(reply);
  if (!subscribe(events, memd_now() + memd_timeout(client), true, reply)) return events;
  memd_events_close(events);
  return NULL;
}

void memd_events_close(memd_events *events) {
  if (!events) return;
  memd_wire_close(&events->wire);
  msgpack_sbuffer_destroy(&events->topics);
  free(events);
}

static int resubscribe(memd_events *events, memd_reply *reply) {
  int64_t until = memd_now() + memd_timeout(events->client);
  for (;;) {
    int code = subscribe(events, until, false, reply);
    bool gone = code == MEMD_NOT_RUNNING || code == MEMD_CONNECTION_LOST || code == MEMD_SHUTTING_DOWN;
    if (!gone || memd_now() >= until) return code;
    poll(NULL, 0, PAUSE_MS);
  }
}

/* An events.lost of our own. */
static int tell_lost(memd_events *events, memd_reply *reply) {
  msgpack_sbuffer made;
  msgpack_sbuffer_init(&made);
  msgpack_packer packer;
  msgpack_packer_init(&packer, &made, msgpack_sbuffer_write);
  msgpack_pack_map(&packer, 2);
  msgpack_pack_str(&packer, 5);
  msgpack_pack_str_body(&packer, "topic", 5);
  msgpack_pack_str(&packer, strlen(MEMD_TOPIC_EVENTS_LOST));
  msgpack_pack_str_body(&packer, MEMD_TOPIC_EVENTS_LOST, strlen(MEMD_TOPIC_EVENTS_LOST));
  msgpack_pack_str(&packer, 3);
  msgpack_pack_str_body(&packer, "seq", 3);
  msgpack_pack_int64(&packer, events->since);
  msgpack_unpack_next(&reply->storage, made.data, made.size, NULL);
  msgpack_sbuffer_destroy(&made);
  events->lost = false;
  reply->result = &reply->storage.data;
  return reply->code = MEMD_OK;
}

int memd_events_next(memd_events *events, int timeout_ms, memd_reply *reply) {
  int64_t until = memd_now() + timeout_ms;
  memd_reply_init(reply);
  for (;;) {
    if (events->lost) return tell_lost(events, reply);
    int code = events->wire.fd < 0 ? MEMD_CONNECTION_LOST : memd_wire_receive(&events->wire, until, reply);
    if (code == MEMD_CONNECTION_LOST) code = resubscribe(events, reply);
    else if (!code && memd_is(&reply->storage.data, "1", "event")) {
      const msgpack_object *event = memd_at(&reply->storage.data, "2.0");
      int64_t seq = memd_int(event, "seq", 0);
      if (seq <= events->since && !memd_is(event, "topic", MEMD_TOPIC_EVENTS_LOST)) continue; /* replayed and live at once */
      if (seq > events->since) events->since = seq;
      reply->result = event;
      return reply->code = MEMD_OK;
    }
    if (code) return code;
  }
}
