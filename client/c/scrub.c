/* The fence: recalled text goes into a prompt inside it, and is taken out of what the model says. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memd.h"

/* Text that grows. */
struct text {
  char *data;
  size_t size, room;
};

struct memd_scrubber {
  char *open, *close;
  struct text block; /* from an opening mark on; empty outside */
  struct text tail;  /* the end of what has arrived, if a mark may begin there */
};

static void append(struct text *text, const char *data, size_t size) {
  if (text->size + size + 1 > text->room) {
    text->room = 2 * (text->size + size + 1);
    text->data = realloc(text->data, text->room);
    if (!text->data) abort();
  }
  memcpy(text->data + text->size, data, size);
  text->data[text->size += size] = 0;
}

static void clear(struct text *text) {
  free(text->data);
  memset(text, 0, sizeof *text);
}

static char *given(struct text *text) {
  append(text, "", 0);
  return text->data;
}

static void take_out(char *text, const char *mark) {
  size_t length = strlen(mark);
  for (char *at = text; (at = strstr(at, mark));) memmove(at, at + length, strlen(at + length) + 1);
}

char *memd_fenced(const char *text, const char *open, const char *close) {
  char *inner = strdup(text);
  if (!inner) abort();
  while (strstr(inner, open) || strstr(inner, close)) { /* what is left may join to another */
    take_out(inner, open);
    take_out(inner, close);
  }
  if (!*inner) return inner;
  size_t size = strlen(open) + strlen(inner) + strlen(close) + 3;
  char *found = malloc(size);
  if (!found) abort();
  snprintf(found, size, "%s\n%s\n%s", open, inner, close);
  free(inner);
  return found;
}

memd_scrubber *memd_scrubber_new(const char *open, const char *close) {
  if (!*open || !*close || strstr(open, close) || strstr(close, open)) return NULL;
  memd_scrubber *scrubber = calloc(1, sizeof *scrubber);
  if (!scrubber || !(scrubber->open = strdup(open)) || !(scrubber->close = strdup(close))) abort();
  return scrubber;
}

void memd_scrubber_free(memd_scrubber *scrubber) {
  if (!scrubber) return;
  free(scrubber->open);
  free(scrubber->close);
  clear(&scrubber->block);
  clear(&scrubber->tail);
  free(scrubber);
}

/* An opening mark of which it is known that no backtick follows. */
static const char *opening(const memd_scrubber *scrubber, const char *text) {
  size_t length = strlen(scrubber->open);
  for (const char *at = text; (at = strstr(at, scrubber->open)); at++) {
    if (!at[length]) return NULL;
    if (at[length] != '`') return at;
  }
  return NULL;
}

/* The first whole mark that counts here. */
static const char *next_mark(const memd_scrubber *scrubber, const char *text, const char **mark) {
  const char *opens = opening(scrubber, text), *closes = scrubber->block.size ? strstr(text, scrubber->close) : NULL;
  bool ends = closes && (!opens || closes < opens);
  *mark = ends ? scrubber->close : scrubber->open;
  return ends ? closes : opens;
}

static bool begins(const char *mark, const char *end, size_t length) { return strlen(mark) >= length && !memcmp(mark, end, length); }

/* How many bytes at the end may be the beginning of a mark, or an opening mark of which the next character decides. */
static size_t uncertain(const memd_scrubber *scrubber, const char *text, size_t size) {
  size_t length = strlen(scrubber->open) > strlen(scrubber->close) ? strlen(scrubber->open) : strlen(scrubber->close);
  for (length = length < size ? length : size; length; length--) {
    const char *end = text + size - length;
    if (begins(scrubber->open, end, length) || (scrubber->block.size && begins(scrubber->close, end, length))) return length;
  }
  return 0;
}

char *memd_scrubber_feed(memd_scrubber *scrubber, const char *chunk) {
  struct text own = {0};
  const char *mark, *at, *text;
  append(&scrubber->tail, chunk, strlen(chunk));
  for (text = scrubber->tail.data; (at = next_mark(scrubber, text, &mark)); text = at + strlen(mark)) {
    if (mark == scrubber->open) {
      if (scrubber->block.size) append(&own, scrubber->block.data, scrubber->block.size); /* nothing has closed it */
      append(&own, text, (size_t)(at - text));
    }
    clear(&scrubber->block);
    if (mark == scrubber->open) append(&scrubber->block, mark, strlen(mark));
  }
  size_t size = strlen(text), held = uncertain(scrubber, text, size);
  append(scrubber->block.size ? &scrubber->block : &own, text, size - held);
  struct text tail = {0};
  append(&tail, text + size - held, held);
  clear(&scrubber->tail);
  scrubber->tail = tail;
  return given(&own);
}

char *memd_scrubber_close(memd_scrubber *scrubber) {
  struct text rest = scrubber->block;
  if (scrubber->tail.size) append(&rest, scrubber->tail.data, scrubber->tail.size);
  memset(&scrubber->block, 0, sizeof scrubber->block);
  clear(&scrubber->tail);
  return given(&rest);
}
