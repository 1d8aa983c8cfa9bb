#include "mercer.h"
#include "last_error.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Not _Thread_local: a library with Go in it has its thread-local storage in the
 * block that is reserved at the start of the process, of which a library that is
 * loaded later, such as by Python, gets next to nothing. */
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int failed;

static void make_key(void) { failed = pthread_key_create(&key, free); }

const char *mercer_last_error(void)
{
	pthread_once(&once, make_key);
	const char *text = failed ? NULL : pthread_getspecific(key);
	return text ? text : "";
}

int mercer_abi(void) { return MERCER_ABI; }

void mercer_set_error(const char *utf8, size_t size)
{
	pthread_once(&once, make_key);
	if (failed)
		return;
	char *text = pthread_getspecific(key);
	if (text == NULL) {
		text = malloc(MERCER_ERROR_SIZE);
		if (text == NULL || pthread_setspecific(key, text)) {
			free(text);
			return;
		}
	}
	if (size >= MERCER_ERROR_SIZE) {
		size = MERCER_ERROR_SIZE - 1;
		while (size > 0 && ((unsigned char)utf8[size] & 0xC0) == 0x80)
			size--; /* not within a character */
	}
	memcpy(text, utf8, size);
	text[size] = 0;
}
