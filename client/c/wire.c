/* One connection: MessagePack-RPC over a Unix socket. No reconnecting, repeating or starting here. */
#define _GNU_SOURCE
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { REQUEST, REPLY, NOTIFICATION, CHUNK = 65536 };

int64_t memd_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Wait until something can be read or written: 1, or 0 when the moment has come. */
static int wait_for(int fd, short events, int64_t until) {
  for (;;) {
    int64_t left = until - memd_now();
    struct pollfd ready = {.fd = fd, .events = events};
    int found = poll(&ready, 1, left > 0 ? (int)(left < INT32_MAX ? left : INT32_MAX) : 0);
    if (found > 0) return 1;
    if (found == 0 || errno != EINTR) return 0;
  }
}

void memd_wire_init(struct memd_wire *wire) {
  wire->fd = -1;
  wire->last = 0;
  msgpack_unpacker_init(&wire->unpacker, CHUNK);
}

void memd_wire_close(struct memd_wire *wire) {
  if (wire->fd < 0) return;
  close(wire->fd);
  wire->fd = -1;
  msgpack_unpacker_destroy(&wire->unpacker);
}

static int connected(int fd, const char *path, int64_t until, memd_reply *reply) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) {
    return memd_fail(reply, MEMD_NOT_RUNNING, false, "%s: too long for a socket's path; set MEMD_SOCKET or XDG_RUNTIME_DIR to a shorter one", path);
  }
  strcpy(address.sun_path, path);
  while (connect(fd, (struct sockaddr *)&address, sizeof address)) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return memd_fail(reply, MEMD_NOT_RUNNING, false, "no memd listens at %s (%s)", path, strerror(errno));
    if (memd_now() >= until) return memd_fail(reply, MEMD_TIMEOUT, false, "%s: too many connections are waiting to be accepted", path);
    poll(NULL, 0, 10); /* the listen queue is full: a Unix socket does not wait for it by itself */
  }
  struct ucred peer;
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) || peer.uid != geteuid()) {
    return memd_fail(reply, MEMD_UNTRUSTED, false, "%s belongs to another user; nothing was sent", path);
  }
  return MEMD_OK;
}

int memd_wire_dial(struct memd_wire *wire, const char *path, int64_t until, memd_reply *reply) {
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return memd_fail(reply, MEMD_NOT_RUNNING, false, "no socket to be had: %s", strerror(errno));
  int code = connected(fd, path, until, reply);
  if (code) {
    close(fd);
    return code;
  }
  memd_wire_init(wire);
  wire->fd = fd;
  return MEMD_OK;
}

static int lose(struct memd_wire *wire, memd_reply *reply, const char *reason) {
  memd_wire_close(wire);
  return memd_fail(reply, MEMD_CONNECTION_LOST, true, "the connection to memd was lost: %s", reason);
}

/* A message that was cut is never carried out. */
static int send_all(struct memd_wire *wire, const msgpack_sbuffer *message, int64_t until, memd_reply *reply) {
  for (size_t at = 0; at < message->size;) {
    ssize_t sent = send(wire->fd, message->data + at, message->size - at, MSG_NOSIGNAL);
    if (sent >= 0) at += (size_t)sent;
    else if (errno == EAGAIN) {
      if (!wait_for(wire->fd, POLLOUT, until)) return lose(wire, reply, "memd does not read");
    } else if (errno != EINTR) return lose(wire, reply, strerror(errno));
  }
  return MEMD_OK;
}

int memd_wire_next(struct memd_wire *wire, msgpack_unpacked *storage) {
  switch (msgpack_unpacker_next(&wire->unpacker, storage)) {
    case MSGPACK_UNPACK_SUCCESS: return 1;
    case MSGPACK_UNPACK_CONTINUE: return 0;
    default: return -1;
  }
}

int memd_wire_receive(struct memd_wire *wire, int64_t until, memd_reply *reply) {
  for (;;) {
    int found = memd_wire_next(wire, &reply->storage);
    if (found > 0) return MEMD_OK;
    if (found < 0) return lose(wire, reply, "what came is no MessagePack");
    if (!msgpack_unpacker_reserve_buffer(&wire->unpacker, CHUNK)) return lose(wire, reply, "out of memory");
    ssize_t count = recv(wire->fd, msgpack_unpacker_buffer(&wire->unpacker), CHUNK, 0);
    if (count > 0) msgpack_unpacker_buffer_consumed(&wire->unpacker, (size_t)count);
    else if (!count) return lose(wire, reply, "memd closed it");
    else if (errno == EAGAIN) {
      if (!wait_for(wire->fd, POLLIN, until)) return memd_fail(reply, MEMD_TIMEOUT, true, "nothing came in time");
    } else if (errno != EINTR) return lose(wire, reply, strerror(errno));
  }
}

static void pack_text(msgpack_packer *packer, const char *text) {
  msgpack_pack_str(packer, strlen(text));
  msgpack_pack_str_body(packer, text, strlen(text));
}

static void pack_cancel(msgpack_sbuffer *message, uint32_t msgid) {
  msgpack_packer packer;
  msgpack_packer_init(&packer, message, msgpack_sbuffer_write);
  msgpack_pack_array(&packer, 3);
  msgpack_pack_int(&packer, NOTIFICATION);
  pack_text(&packer, "rpc.cancel");
  msgpack_pack_array(&packer, 1);
  msgpack_pack_map(&packer, 1);
  pack_text(&packer, "msgid");
  msgpack_pack_uint32(&packer, msgid);
}

static void pack_request(msgpack_sbuffer *message, uint32_t msgid, const char *method, const memd_params *params, const char *extra,
                         size_t extra_size, size_t extra_count) {
  msgpack_packer packer;
  msgpack_packer_init(&packer, message, msgpack_sbuffer_write);
  msgpack_pack_array(&packer, 4);
  msgpack_pack_int(&packer, REQUEST);
  msgpack_pack_uint32(&packer, msgid);
  pack_text(&packer, method);
  msgpack_pack_array(&packer, 1);
  msgpack_pack_map(&packer, (params ? params->count : 0) + extra_count);
  if (params) msgpack_sbuffer_write(message, params->values.data, params->values.size);
  msgpack_sbuffer_write(message, extra, extra_size);
}

/* Whether a message is the reply to this request; what else came is passed over, but for the last word of a daemon that is full. */
static bool is_reply(const msgpack_object *message, uint32_t msgid, struct memd_wire *wire, memd_reply *reply) {
  if (message->type != MSGPACK_OBJECT_ARRAY || message->via.array.size < 3) return false;
  const msgpack_object *part = message->via.array.ptr;
  if (part[0].via.u64 == REPLY && message->via.array.size == 4) return part[1].via.u64 == msgid;
  if (part[0].via.u64 == NOTIFICATION && memd_is(message, "1", "rpc.protocol_error") && memd_is(message, "2.0.name", "too_many_requests")) {
    memd_fail_from_wire(reply, memd_at(message, "2.0"));
    memd_wire_close(wire); /* refused as a whole: nothing was taken */
  }
  return false;
}

int memd_wire_call(struct memd_wire *wire, const char *method, const memd_params *params, const char *extra, size_t extra_size,
                   size_t extra_count, int64_t until, memd_reply *reply) {
  uint32_t msgid = ++wire->last;
  msgpack_sbuffer message;
  msgpack_sbuffer_init(&message);
  pack_request(&message, msgid, method, params, extra, extra_size, extra_count);
  int code = send_all(wire, &message, until, reply);
  msgpack_sbuffer_clear(&message);
  while (!code && !(code = memd_wire_receive(wire, until, reply))) {
    if (is_reply(&reply->storage.data, msgid, wire, reply)) break;
    if (wire->fd < 0) code = reply->code;
  }
  if (code == MEMD_TIMEOUT) { /* nobody waits any more */
    memd_reply ignored;
    memd_reply_init(&ignored);
    pack_cancel(&message, msgid);
    send_all(wire, &message, memd_now(), &ignored);
    memd_reply_free(&ignored);
    snprintf(reply->message, sizeof reply->message, "no reply to %s in time", method);
  }
  msgpack_sbuffer_destroy(&message);
  if (code) return code;
  const msgpack_object *part = reply->storage.data.via.array.ptr;
  if (part[2].type != MSGPACK_OBJECT_NIL) return memd_fail_from_wire(reply, &part[2]);
  reply->result = &part[3];
  return reply->code = MEMD_OK;
}
