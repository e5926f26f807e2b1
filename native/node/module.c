// What JavaScript sees of the module; src/graph/native/native-module.ts has its types. Every failure becomes an Error.
// All its state is that of the process, behind locks, so any number of threads may load it.
#include "node/module.h"

#include <stdlib.h>

#include "node/arguments.h"
#include "processor.h"

// A hash of the source files, from the build.
#ifndef SOURCES
#define SOURCES "unknown"
#endif

// open(libraryPath)
static napi_value open_runtime(napi_env env, napi_callback_info info) {
  napi_value path;
  char *text = read_arguments(env, info, 1, &path) ? read_string(env, path) : NULL;
  if (text == NULL) return NULL;
  const char *failure = runtime_open(text);
  free(text);
  return failure == NULL ? NULL : fail(env, failure);
}

static napi_value runs_here(napi_env env, napi_callback_info info) {
  (void)info;
  napi_value result;
  return napi_get_boolean(env, processor_has_vectors(), &result) == napi_ok ? result : fail(env, "no booleans");
}

// int8Path()
static napi_value int8_path(napi_env env, napi_callback_info info) {
  (void)info;
  napi_value result;
  const char *name = int8_path_name();
  return napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &result) == napi_ok ? result : fail(env, "out of memory");
}

enum { VALUES, SCALES, BIAS, INPUTS, OUTPUTS, PACK_ARGUMENTS };

static Int8Weights *pack(napi_env env, napi_value *arguments) {
  int64_t inputs, outputs;
  if (!read_count(env, arguments[INPUTS], &inputs) || !read_count(env, arguments[OUTPUTS], &outputs)) return NULL;
  if (inputs < 1 || inputs > INT32_MAX || outputs < 1 || outputs > INT32_MAX) {
    return fail(env, "a size is out of range");
  }
  void *values, *scales, *bias = NULL;
  size_t floats = (size_t)outputs * sizeof(float);
  if (!read_exact(env, arguments[VALUES], (size_t)inputs * (size_t)outputs, &values)) return NULL;
  if (!read_exact(env, arguments[SCALES], floats, &scales)) return NULL;
  if (!is_empty(env, arguments[BIAS]) && !read_exact(env, arguments[BIAS], floats, &bias)) return NULL;
  Int8Weights *weights = int8_weights_pack(values, scales, bias, (size_t)inputs, (size_t)outputs);
  return weights == NULL ? fail(env, "out of memory") : weights;
}

// When a thread ends, its weights are released.
static void release_at_end(void *number) { weights_release((int64_t)(intptr_t)number); }

// packInt8(values, scales, bias, inputs, outputs): number
static napi_value pack_int8(napi_env env, napi_callback_info info) {
  napi_value arguments[PACK_ARGUMENTS], result;
  Int8Weights *weights = read_arguments(env, info, PACK_ARGUMENTS, arguments) ? pack(env, arguments) : NULL;
  if (weights == NULL) return NULL;
  int64_t number = weights_register(weights);
  if (number == 0) {
    int8_weights_free(weights);
    return fail(env, "out of memory");
  }
  napi_add_env_cleanup_hook(env, release_at_end, (void *)(intptr_t)number);
  return napi_create_int64(env, number, &result) == napi_ok ? result : fail(env, "out of memory");
}

// releaseInt8(number)
static napi_value release_int8(napi_env env, napi_callback_info info) {
  napi_value argument;
  int64_t number;
  if (!read_arguments(env, info, 1, &argument) || !read_count(env, argument, &number)) return NULL;
  if (!weights_release(number)) return fail(env, "no weights have this number");
  napi_remove_env_cleanup_hook(env, release_at_end, (void *)(intptr_t)number);
  return NULL;
}

NAPI_MODULE_INIT() {
  napi_property_descriptor properties[] = {
      {"open", NULL, open_runtime, NULL, NULL, NULL, napi_enumerable, NULL},
      {"runsHere", NULL, runs_here, NULL, NULL, NULL, napi_enumerable, NULL},
      {"int8Path", NULL, int8_path, NULL, NULL, NULL, napi_enumerable, NULL},
      {"createSession", NULL, module_create_session, NULL, NULL, NULL, napi_enumerable, NULL},
      {"names", NULL, module_names, NULL, NULL, NULL, napi_enumerable, NULL},
      {"keep", NULL, module_keep, NULL, NULL, NULL, napi_enumerable, NULL},
      {"run", NULL, module_run, NULL, NULL, NULL, napi_enumerable, NULL},
      {"release", NULL, module_release, NULL, NULL, NULL, napi_enumerable, NULL},
      {"packInt8", NULL, pack_int8, NULL, NULL, NULL, napi_enumerable, NULL},
      {"releaseInt8", NULL, release_int8, NULL, NULL, NULL, napi_enumerable, NULL},
      {"sources", NULL, NULL, NULL, NULL, NULL, napi_enumerable, NULL},
  };
  size_t count = sizeof properties / sizeof *properties;
  if (napi_create_string_utf8(env, SOURCES, NAPI_AUTO_LENGTH, &properties[count - 1].value) != napi_ok ||
      napi_define_properties(env, exports, count, properties) != napi_ok) {
    return fail(env, "out of memory");
  }
  return exports;
}
