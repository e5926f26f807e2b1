// What JavaScript sees of the module; src/graph/native/native-module.ts has its types. Every failure becomes an Error.
// All its state is that of the process, behind locks, so any number of threads may load it.
#include "node/module.h"

#include <stdlib.h>

#include "huge-pages.h"
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

// useHugePages(array)
static napi_value module_use_huge_pages(napi_env env, napi_callback_info info) {
  napi_value array;
  void *data;
  size_t bytes;
  if (read_arguments(env, info, 1, &array) && read_array(env, array, &data, &bytes)) use_huge_pages(data, bytes);
  return NULL;
}

enum { VALUES, SCALES, BIAS, INPUTS, OUTPUTS, PACK_ARGUMENTS };

typedef struct {
  void *values, *scales, *bias;  // bias: NULL = none
  int64_t inputs, outputs;
} PackArguments;

// `int4`: two values in a byte, and a scale for 32 inputs. False = it has failed.
static bool read_pack(napi_env env, const napi_value *arguments, bool int4, PackArguments *read) {
  if (!read_count(env, arguments[INPUTS], &read->inputs)) return false;
  if (!read_count(env, arguments[OUTPUTS], &read->outputs)) return false;
  const bool in_range = read->inputs >= 1 && read->inputs <= INT32_MAX && read->outputs >= 1 && read->outputs <= INT32_MAX;
  if (!in_range) return fail(env, "a size is out of range");
  if (int4 && read->inputs % 32 != 0) return fail(env, "int4 needs a multiple of 32 inputs");
  const size_t inputs = (size_t)read->inputs, outputs = (size_t)read->outputs, floats = outputs * sizeof(float);
  if (!read_exact(env, arguments[VALUES], int4 ? inputs / 2 * outputs : inputs * outputs, &read->values)) return false;
  if (!read_exact(env, arguments[SCALES], int4 ? inputs / 32 * floats : floats, &read->scales)) return false;
  read->bias = NULL;
  return is_empty(env, arguments[BIAS]) || read_exact(env, arguments[BIAS], floats, &read->bias);
}

// When a thread ends, its weights are released.
static void release_at_end(void *number) { weights_release((int64_t)(intptr_t)number); }

static napi_value pack(napi_env env, napi_callback_info info, bool int4) {
  napi_value arguments[PACK_ARGUMENTS], result;
  PackArguments of;
  if (!read_arguments(env, info, PACK_ARGUMENTS, arguments) || !read_pack(env, arguments, int4, &of)) return NULL;
  const size_t inputs = (size_t)of.inputs, outputs = (size_t)of.outputs;
  LinearWeights *weights = int4 ? int4_weights_pack(of.values, of.scales, of.bias, inputs, outputs)
                                : int8_weights_pack(of.values, of.scales, of.bias, inputs, outputs);
  if (weights == NULL) return fail(env, "out of memory");
  int64_t number = weights_register(weights);
  if (number == 0) {
    linear_weights_free(weights);
    return fail(env, "out of memory");
  }
  napi_add_env_cleanup_hook(env, release_at_end, (void *)(intptr_t)number);
  return napi_create_int64(env, number, &result) == napi_ok ? result : fail(env, "out of memory");
}

// packInt8(values, scales, bias, inputs, outputs): number
static napi_value pack_int8(napi_env env, napi_callback_info info) { return pack(env, info, false); }

// packInt4(values, scales, bias, inputs, outputs): number
static napi_value pack_int4(napi_env env, napi_callback_info info) { return pack(env, info, true); }

// releaseWeights(number)
static napi_value release_weights(napi_env env, napi_callback_info info) {
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
      {"packInt4", NULL, pack_int4, NULL, NULL, NULL, napi_enumerable, NULL},
      {"releaseWeights", NULL, release_weights, NULL, NULL, NULL, napi_enumerable, NULL},
      {"useHugePages", NULL, module_use_huge_pages, NULL, NULL, NULL, napi_enumerable, NULL},
      {"sources", NULL, NULL, NULL, NULL, NULL, napi_enumerable, NULL},
  };
  size_t count = sizeof properties / sizeof *properties;
  if (napi_create_string_utf8(env, SOURCES, NAPI_AUTO_LENGTH, &properties[count - 1].value) != napi_ok ||
      napi_define_properties(env, exports, count, properties) != napi_ok) {
    return fail(env, "out of memory");
  }
  return exports;
}
