/* Parameters and replies: values by name. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

memd_params *memd_params_new(void) {
  memd_params *params = calloc(1, sizeof *params);
  if (!params) abort(); /* there is nothing sensible to do without a few bytes */
  msgpack_sbuffer_init(&params->values);
  msgpack_packer_init(&params->packer, &params->values, msgpack_sbuffer_write);
  return params;
}

void memd_params_free(memd_params *params) {
  if (!params) return;
  msgpack_sbuffer_destroy(&params->values);
  free(params);
}

static void put_text(memd_params *params, const char *text) {
  msgpack_pack_str(&params->packer, strlen(text));
  msgpack_pack_str_body(&params->packer, text, strlen(text));
}

static void put_key(memd_params *params, const char *key) {
  params->has_deadline |= !strcmp(key, "deadline_ms");
  params->has_request_id |= !strcmp(key, "request_id");
  params->count++;
  put_text(params, key);
}

void memd_put_str(memd_params *params, const char *key, const char *value) {
  if (!value) return;
  put_key(params, key);
  put_text(params, value);
}

void memd_put_int(memd_params *params, const char *key, int64_t value) {
  put_key(params, key);
  msgpack_pack_int64(&params->packer, value);
}

void memd_put_bool(memd_params *params, const char *key, bool value) {
  put_key(params, key);
  value ? msgpack_pack_true(&params->packer) : msgpack_pack_false(&params->packer);
}

void memd_put_packed(memd_params *params, const char *key, const char *data, size_t size) {
  put_key(params, key);
  msgpack_sbuffer_write(&params->values, data, size);
}

void memd_put_object(memd_params *params, const char *key, const msgpack_object *value) {
  put_key(params, key);
  msgpack_pack_object(&params->packer, *value);
}

void memd_reply_init(memd_reply *reply) {
  memset(reply, 0, sizeof *reply);
  msgpack_unpacked_init(&reply->storage);
}

void memd_reply_free(memd_reply *reply) {
  msgpack_unpacked_destroy(&reply->storage);
  memset(reply, 0, sizeof *reply);
}

static const char *const TROUBLE[] = {"", "not_running", "untrusted", "connection_lost", "timeout", "invalid_reply"};

int memd_fail(memd_reply *reply, int code, bool sent, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reply->message, sizeof reply->message, format, arguments);
  va_end(arguments);
  snprintf(reply->name, sizeof reply->name, "%s", TROUBLE[-code]);
  reply->result = reply->data = NULL;
  reply->retryable = !sent;
  reply->sent = sent;
  *reply->outcome = 0;
  return reply->code = code;
}

/* Copy a text and end it; what does not fit is cut. */
static void copy(char *to, size_t room, const msgpack_object *value, const char *path) {
  size_t size = 0;
  const char *text = memd_text(value, path, &size);
  if (size >= room) size = room - 1;
  if (text) memcpy(to, text, size);
  to[text ? size : 0] = 0;
}

int memd_fail_from_wire(memd_reply *reply, const msgpack_object *error) {
  reply->result = NULL;
  reply->sent = false;
  if (error->type == MSGPACK_OBJECT_ARRAY) {
    *reply->name = *reply->outcome = 0;
    copy(reply->message, sizeof reply->message, error, "1");
    reply->code = (int)memd_int(error, "0", 0);
    return reply->code = reply->code ? reply->code : MEMD_INVALID_REPLY;
  }
  copy(reply->name, sizeof reply->name, error, "name");
  copy(reply->message, sizeof reply->message, error, "message");
  copy(reply->outcome, sizeof reply->outcome, error, "data.outcome");
  reply->retryable = memd_bool(error, "retryable", false);
  reply->data = memd_at(error, "data");
  return reply->code = (int)memd_int(error, "code", MEMD_INVALID_REPLY);
}

static const msgpack_object *child(const msgpack_object *value, const char *key, size_t length) {
  if (value->type == MSGPACK_OBJECT_ARRAY && length && isdigit((unsigned char)*key)) {
    unsigned long at = strtoul(key, NULL, 10);
    return at < value->via.array.size ? &value->via.array.ptr[at] : NULL;
  }
  if (value->type != MSGPACK_OBJECT_MAP) return NULL;
  for (uint32_t i = 0; i < value->via.map.size; i++) {
    const msgpack_object_kv *pair = &value->via.map.ptr[i];
    if (pair->key.type == MSGPACK_OBJECT_STR && pair->key.via.str.size == length && !memcmp(pair->key.via.str.ptr, key, length)) return &pair->val;
  }
  return NULL;
}

const msgpack_object *memd_at(const msgpack_object *value, const char *path) {
  while (value && *path) {
    size_t length = strcspn(path, ".");
    value = child(value, path, length);
    path += length + (path[length] == '.');
  }
  return value && value->type != MSGPACK_OBJECT_NIL ? value : NULL;
}

const char *memd_text(const msgpack_object *value, const char *path, size_t *size) {
  value = memd_at(value, path);
  if (!value || value->type != MSGPACK_OBJECT_STR) return NULL;
  *size = value->via.str.size;
  return value->via.str.ptr;
}

int64_t memd_int(const msgpack_object *value, const char *path, int64_t otherwise) {
  value = memd_at(value, path);
  if (!value) return otherwise;
  if (value->type == MSGPACK_OBJECT_POSITIVE_INTEGER) return (int64_t)value->via.u64;
  return value->type == MSGPACK_OBJECT_NEGATIVE_INTEGER ? value->via.i64 : otherwise;
}

bool memd_bool(const msgpack_object *value, const char *path, bool otherwise) {
  value = memd_at(value, path);
  return value && value->type == MSGPACK_OBJECT_BOOLEAN ? value->via.boolean : otherwise;
}

bool memd_is(const msgpack_object *value, const char *path, const char *text) {
  size_t size = 0;
  const char *found = memd_text(value, path, &size);
  return found && size == strlen(text) && !memcmp(found, text, size);
}
