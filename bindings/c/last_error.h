/* The error text and the parameter names of the calling thread. Go code that C calls runs on the
 * thread of its caller, so that Go and C use the same data. */
#include <stddef.h>

#define MERCER_ERROR_SIZE 2048

void mercer_set_error(const char *utf8, size_t size) __attribute__((visibility("hidden")));
const char *mercer_names(void) __attribute__((visibility("hidden")));
