// Reads what JavaScript passes to the module's functions.
#include "node/arguments.h"

#include <stdlib.h>

void *fail(napi_env env, const char *message) {
  bool pending;
  if (napi_is_exception_pending(env, &pending) == napi_ok && !pending) napi_throw_error(env, NULL, message);
  return NULL;
}

void *fail_with(napi_env env, OrtStatus *status) {
  fail(env, ORT(GetErrorMessage)(status));
  ORT(ReleaseStatus)(status);
  return NULL;
}

bool read_arguments(napi_env env, napi_callback_info info, size_t count, napi_value *arguments) {
  return napi_get_cb_info(env, info, &count, arguments, NULL, NULL) == napi_ok || fail(env, "no arguments") != NULL;
}

char *read_string(napi_env env, napi_value value) {
  size_t length;
  if (napi_get_value_string_utf8(env, value, NULL, 0, &length) != napi_ok) return fail(env, "expected a string");
  char *text = malloc(length + 1);
  if (text == NULL) return fail(env, "out of memory");
  napi_get_value_string_utf8(env, value, text, length + 1, &length);
  return text;
}

// Bytes of one element of a typed array.
static size_t width_of(napi_typedarray_type type) {
  switch (type) {
    case napi_int16_array:
    case napi_uint16_array:
      return 2;
    case napi_int32_array:
    case napi_uint32_array:
    case napi_float32_array:
      return 4;
    case napi_float64_array:
    case napi_bigint64_array:
    case napi_biguint64_array:
      return 8;
    default:
      return 1;
  }
}

bool read_array(napi_env env, napi_value value, void **data, size_t *bytes) {
  napi_typedarray_type type;
  size_t length;
  if (napi_get_typedarray_info(env, value, &type, &length, data, NULL, NULL) != napi_ok) {
    return fail(env, "expected a typed array") != NULL;
  }
  *bytes = length * width_of(type);
  return true;
}

bool read_exact(napi_env env, napi_value value, size_t bytes, void **data) {
  size_t found;
  if (!read_array(env, value, data, &found)) return false;
  return found == bytes || fail(env, "an array has another length") != NULL;
}

bool read_count(napi_env env, napi_value value, int64_t *count) {
  bool read = napi_get_value_int64(env, value, count) == napi_ok && *count >= 0;
  return read || fail(env, "expected a number that is not negative") != NULL;
}

bool is_empty(napi_env env, napi_value value) {
  napi_valuetype type;
  return napi_typeof(env, value, &type) == napi_ok && (type == napi_null || type == napi_undefined);
}

void free_strings(char **strings, size_t count) {
  for (size_t i = 0; strings != NULL && i < count; i++) free(strings[i]);
  free(strings);
}

char **read_strings(napi_env env, napi_value list, size_t *count) {
  uint32_t length;
  if (napi_get_array_length(env, list, &length) != napi_ok) return fail(env, "expected an array of strings");
  char **strings = calloc(length + 1, sizeof *strings);
  if (strings == NULL) return fail(env, "out of memory");
  *count = length;
  for (uint32_t i = 0; i < length; i++) {
    napi_value item;
    if (napi_get_element(env, list, i, &item) == napi_ok) strings[i] = read_string(env, item);
    if (strings[i] != NULL) continue;
    free_strings(strings, length);
    return fail(env, "expected a string");
  }
  return strings;
}
