// Reads what JavaScript passes to the module's functions. A reader that returns false or NULL has thrown an Error.
#ifndef FLYWHEEL_ARGUMENTS_H
#define FLYWHEEL_ARGUMENTS_H

#define NAPI_VERSION 8
#include <node_api.h>

#include "runtime/binding.h"

// Throw, unless something is thrown already, and return NULL.
void *fail(napi_env env, const char *message);
void *fail_with(napi_env env, OrtStatus *status);  // frees the status

// Those that are missing are undefined.
bool read_arguments(napi_env env, napi_callback_info info, size_t count, napi_value *arguments);
bool read_count(napi_env env, napi_value value, int64_t *count);
// The memory of a typed array, which is valid as long as JavaScript holds the array.
bool read_array(napi_env env, napi_value value, void **data, size_t *bytes);
bool read_exact(napi_env env, napi_value value, size_t bytes, void **data);
bool is_empty(napi_env env, napi_value value);
char *read_string(napi_env env, napi_value value);
char **read_strings(napi_env env, napi_value list, size_t *count);
void free_strings(char **strings, size_t count);

#endif
