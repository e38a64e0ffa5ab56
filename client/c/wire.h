/* One connection, and where it leads: what client.c and events.c share. Not for users. */
#ifndef MEMD_WIRE_H
#define MEMD_WIRE_H

#include "memd.h"

struct memd_wire {
  int fd;
  uint32_t last;
  msgpack_unpacker unpacker;
};

struct memd_params {
  msgpack_sbuffer values; /* keys and values, one after the other */
  msgpack_packer packer;
  size_t count;
  bool has_deadline, has_request_id;
};

/* Milliseconds on a clock that only goes on. */
int64_t memd_now(void);

/* Make the reply an error. */
int memd_fail(memd_reply *reply, int code, bool sent, const char *format, ...) __attribute__((format(printf, 4, 5)));
void memd_reply_init(memd_reply *reply);
/* Read the error of a reply, in the map form or the pair form. */
int memd_fail_from_wire(memd_reply *reply, const msgpack_object *error);

/* Connect, and look whose process it is before anything is said. */
int memd_wire_dial(struct memd_wire *wire, const char *path, int64_t until, memd_reply *reply);
/* Send a request and wait for its reply. */
int memd_wire_call(struct memd_wire *wire, const char *method, const memd_params *params, const char *extra, size_t extra_size,
                   size_t extra_count, int64_t until, memd_reply *reply);
/* The next message of the daemon, in reply->storage: MEMD_OK, MEMD_TIMEOUT or MEMD_CONNECTION_LOST. */
int memd_wire_receive(struct memd_wire *wire, int64_t until, memd_reply *reply);
/* What has arrived already: 1 with a message in storage, 0 if more bytes are needed, -1 if it is no MessagePack. */
int memd_wire_next(struct memd_wire *wire, msgpack_unpacked *storage);
void memd_wire_init(struct memd_wire *wire);
void memd_wire_close(struct memd_wire *wire);

/* The places where the agent socket may be, at most two; how many. */
int memd_places(const char *argument, char places[2][512]);
/* Have memd started: the path of a socket that answers. */
int memd_start(const char *socket, int64_t until, char *path, size_t size, memd_reply *reply);

/* A new connection that has said hello. */
int memd_open(memd_client *client, struct memd_wire *wire, int64_t until, bool may_start, memd_reply *reply);
int memd_timeout(const memd_client *client);

#endif
