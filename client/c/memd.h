/* A thin blocking client for memd, the daemon that keeps the memory of agents.
 *
 * A client connects when it is first used, starts the daemon if nobody listens, and connects again when it must. It is not for several
 * threads at once. PROTOCOL.md has the methods; parameters are put by name, results are read by path. Texts are UTF-8. */
#ifndef MEMD_H
#define MEMD_H

#include <msgpack.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "names.h"

#define MEMD_VERSION "0.1.0"

typedef struct memd_client memd_client;
typedef struct memd_events memd_events;
typedef struct memd_scrubber memd_scrubber;

/* Where memd is and who calls; all zero is a client for the user's own daemon. The texts have to live as long as the client. */
struct memd_options {
  const char *socket;  /* its path; NULL looks at the places of the protocol */
  const char *profile; /* needed only where several are configured */
  const char *name;    /* recorded with every change */
  const char *context; /* "primary" (default), "subagent", "cron" or "job" */
  const char *access;  /* less than the context has: "none", "read" or "add" */
  int timeout_ms;      /* what a call may take, reconnecting and repeating included; 0 is ten seconds */
  bool no_autostart;   /* leave a daemon that is not running alone, as MEMD_AUTOSTART=0 does */
};

/* NULL only without memory. */
memd_client *memd_new(const struct memd_options *options);
void memd_free(memd_client *client);

/* Parameters, put one by one. They are the call's: memd_call frees them. */
typedef struct memd_params memd_params;
memd_params *memd_params_new(void);
void memd_put_str(memd_params *params, const char *key, const char *value);
void memd_put_int(memd_params *params, const char *key, int64_t value);
void memd_put_bool(memd_params *params, const char *key, bool value);
/* Any value, packed with msgpack's own functions. */
void memd_put_packed(memd_params *params, const char *key, const char *data, size_t size);
void memd_put_object(memd_params *params, const char *key, const msgpack_object *value);
void memd_params_free(memd_params *params);

/* What became of a call. Free it with memd_reply_free, whatever the code. */
typedef struct memd_reply {
  int code; /* MEMD_OK, or an enum memd_code; a code that this client does not know is an error too */
  const msgpack_object *result; /* of MEMD_OK */
  char name[32];                /* the error's stable name */
  char message[512];            /* for people, cut to this size */
  bool retryable;
  char outcome[16];     /* of a mutation that failed: "none", or "unknown" if something may have changed */
  char request_id[40];  /* of a mutation: under which id it may be asked again */
  const msgpack_object *data; /* of an error of the daemon: what is needed to act */
  msgpack_unpacked storage;   /* what result and data point into */
  bool sent;                  /* whether the daemon may have seen the request */
} memd_reply;

/* Call a method, over lost connections and restarts of the daemon. Mutations get a request_id, with which they are done once however
 * often they are sent. The reply's code. params may be NULL. */
int memd_call(memd_client *client, const char *method, memd_params *params, memd_reply *reply);
void memd_reply_free(memd_reply *reply);

/* What is at a path such as "entry.text" or "changes.0.id"; NULL if nothing is, or nil. */
const msgpack_object *memd_at(const msgpack_object *value, const char *path);
/* A text, not terminated, and its length; NULL if there is none. */
const char *memd_text(const msgpack_object *value, const char *path, size_t *size);
int64_t memd_int(const msgpack_object *value, const char *path, int64_t otherwise);
bool memd_bool(const msgpack_object *value, const char *path, bool otherwise);
/* Whether there is this very text. */
bool memd_is(const msgpack_object *value, const char *path, const char *text);

/* Events as they happen, over a connection of their own; no topics means all. since: the seq after which they begin, or -1 for now.
 * NULL on an error, which is in the reply. */
memd_events *memd_events_open(memd_client *client, const char *const *topics, size_t count, int64_t since, memd_reply *reply);
/* Wait for the next event, over restarts of the daemon: MEMD_OK with it as the result, MEMD_TIMEOUT, or an error. "events.lost" as the
 * topic says that some could not be kept: read the stores again. */
int memd_events_next(memd_events *events, int timeout_ms, memd_reply *reply);
void memd_events_close(memd_events *events);

/* Go through the daemon's certification: each reply is the next call's argument. The code of the first reply that is none. */
int memd_certify(memd_client *client, memd_reply *reply);

/* Recalled text for the user turn, between the session's two marks, "" for no text; to be freed. */
char *memd_fenced(const char *text, const char *open, const char *close);

/* Takes a session's blocks out of what a model says, in chunks of any size. A block is an opening mark, text without marks, and a
 * closing mark; all else is the model's own. An opening mark before a backtick is quoted and begins nothing. NULL if the marks cannot
 * be told apart. */
memd_scrubber *memd_scrubber_new(const char *open, const char *close);
/* The part of what has arrived that is surely the model's own and was not given before; to be freed. */
char *memd_scrubber_feed(memd_scrubber *scrubber, const char *chunk);
/* The rest: a block that was never closed is the model's own; to be freed. Afterwards a new stream begins. */
char *memd_scrubber_close(memd_scrubber *scrubber);
void memd_scrubber_free(memd_scrubber *scrubber);

#endif
