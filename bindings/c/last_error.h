/* The error text and the names of each thread. Go code that C calls runs on the caller's
 * thread, so that it finds the same text. */
#include <stddef.h>

#define MERCER_ERROR_SIZE 2048

void mercer_set_error(const char *utf8, size_t size) __attribute__((visibility("hidden")));
const char *mercer_names(void) __attribute__((visibility("hidden")));
