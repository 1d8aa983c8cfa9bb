#include "mercer.h"
#include "last_error.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The data of one thread. It is not _Thread_local: a library with Go code needs thread-local
 * storage in the block that the loader reserves at the start of the process, and almost nothing of
 * that block is free when Python, for example, loads the library later. */
struct state {
	char error[MERCER_ERROR_SIZE];
	char *names; /* the list of mercer_set_names; each name ends with a newline */
};

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int failed;

static void discard(void *state)
{
	free(((struct state *)state)->names);
	free(state);
}

static void make_key(void) { failed = pthread_key_create(&key, discard); }

/* Returns the data of this thread. If there are none, it makes them if make is 1. It returns NULL
 * if there are none, or if there is too little memory for them. */
static struct state *state(int make)
{
	pthread_once(&once, make_key);
	struct state *s = failed ? NULL : pthread_getspecific(key);
	if (s == NULL && make && !failed) {
		s = calloc(1, sizeof *s);
		if (s && pthread_setspecific(key, s)) {
			free(s);
			s = NULL;
		}
	}
	return s;
}

const char *mercer_last_error(void)
{
	struct state *s = state(0);
	return s ? s->error : "";
}

int mercer_abi(void) { return MERCER_ABI; }

void mercer_set_error(const char *utf8, size_t size)
{
	struct state *s = state(1);
	if (s == NULL)
		return;
	if (size >= MERCER_ERROR_SIZE) {
		size = MERCER_ERROR_SIZE - 1;
		while (size > 0 && ((unsigned char)utf8[size] & 0xC0) == 0x80)
			size--; /* do not cut a UTF-8 character */
	}
	memcpy(s->error, utf8, size);
	s->error[size] = 0;
}

int mercer_set_names(const char *const *names)
{
	static const char full[] = "libmercer: names: there is too little memory for the list";
	struct state *s = state(1);
	char *joined = NULL;
	if (names) {
		size_t size = 1;
		for (const char *const *p = names; *p; p++)
			size += strlen(*p) + 1;
		joined = malloc(size);
		if (s == NULL || joined == NULL) {
			free(joined);
			mercer_set_error(full, sizeof full - 1);
			return MERCER_MEMORY;
		}
		char *to = joined;
		for (const char *const *p = names; *p; p++) {
			size_t n = strlen(*p);
			memcpy(to, *p, n);
			to[n] = '\n';
			to += n + 1;
		}
		*to = 0;
	}
	if (s) {
		free(s->names);
		s->names = joined;
	}
	return MERCER_OK;
}

const char *mercer_names(void)
{
	struct state *s = state(0);
	return s ? s->names : NULL;
}
