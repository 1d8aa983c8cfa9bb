#include "mercer.h"
#include "last_error.h"

#include <string.h>

static _Thread_local char text[MERCER_ERROR_SIZE];

const char *mercer_last_error(void) { return text; }

int mercer_abi(void) { return MERCER_ABI; }

void mercer_set_error(const char *utf8, size_t size) {
	if (size >= sizeof text) {
		size = sizeof text - 1;
		while (size > 0 && ((unsigned char)utf8[size] & 0xC0) == 0x80)
			size--; /* not within a character */
	}
	memcpy(text, utf8, size);
	text[size] = 0;
}
