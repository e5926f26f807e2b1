// Sessions for JavaScript: createSession, names, keep, run, release.
#include <stdlib.h>
#include <string.h>

#include "node/arguments.h"
#include "node/module.h"

static bool read_files(napi_env env, napi_value list, SessionRequest *request) {
  request->file_contents = calloc(request->file_count + 1, sizeof *request->file_contents);
  request->file_lengths = calloc(request->file_count + 1, sizeof *request->file_lengths);
  if (request->file_contents == NULL || request->file_lengths == NULL) return fail(env, "out of memory") != NULL;
  for (uint32_t i = 0; i < request->file_count; i++) {
    napi_value item;
    if (napi_get_element(env, list, i, &item) != napi_ok) return fail(env, "expected an array of files") != NULL;
    if (!read_array(env, item, (void **)&request->file_contents[i], &request->file_lengths[i])) return false;
  }
  return true;
}

enum { MODEL, THREADS, OWN_THREADS, SPIN, CONFIG, FILE_NAMES, FILE_CONTENTS, CREATE_ARGUMENTS };

static bool read_request(napi_env env, napi_value *arguments, SessionRequest *request) {
  int64_t threads, spin;
  if (!read_array(env, arguments[MODEL], (void **)&request->model, &request->model_bytes)) return false;
  if (!read_count(env, arguments[THREADS], &threads)) return false;
  if (threads < 1 || threads > 1024) return fail(env, "expected 1 to 1024 threads") != NULL;
  request->threads = (size_t)threads;
  if (napi_get_value_bool(env, arguments[OWN_THREADS], &request->own_threads) != napi_ok) {
    return fail(env, "expected a boolean") != NULL;
  }
  if (!read_count(env, arguments[SPIN], &spin)) return false;
  request->spin_us = (size_t)spin;
  request->config = read_strings(env, arguments[CONFIG], &request->config_count);
  if (request->config == NULL) return false;
  request->file_names = read_strings(env, arguments[FILE_NAMES], &request->file_count);
  return request->file_names != NULL && read_files(env, arguments[FILE_CONTENTS], request);
}

// The external value's data is a Session ** that `release` empties.
static void finalize_session(napi_env env, void *data, void *hint) {
  (void)env, (void)hint;
  Session **holder = data;
  if (*holder != NULL) session_release(*holder);
  free(holder);
}

static napi_value hold_session(napi_env env, Session *session) {
  Session **holder = malloc(sizeof *holder);
  napi_value external = NULL;
  if (holder != NULL) *holder = session;
  if (holder == NULL || napi_create_external(env, holder, finalize_session, NULL, &external) != napi_ok) {
    session_release(session);
    free(holder);
    return fail(env, "out of memory");
  }
  return external;
}

// createSession(model, threads, ownThreads, spinMicroseconds, config, fileNames, fileContents)
napi_value module_create_session(napi_env env, napi_callback_info info) {
  napi_value arguments[CREATE_ARGUMENTS];
  if (!read_arguments(env, info, CREATE_ARGUMENTS, arguments)) return NULL;
  if (ort_api == NULL) return fail(env, "the runtime is not open");
  SessionRequest request = {0};
  Session *session = NULL;
  if (read_request(env, arguments, &request)) {
    OrtStatus *failure = session_create(&request, &session);
    if (failure != NULL) session = fail_with(env, failure);
  }
  free_strings(request.config, request.config_count);
  free_strings(request.file_names, request.file_count);
  free(request.file_contents);
  free(request.file_lengths);
  return session == NULL ? NULL : hold_session(env, session);
}

static Session **read_holder(napi_env env, napi_value value) {
  void *holder;
  return napi_get_value_external(env, value, &holder) == napi_ok ? holder : fail(env, "expected a session");
}

static Session *read_session(napi_env env, napi_value value) {
  Session **holder = read_holder(env, value);
  if (holder == NULL) return NULL;
  return *holder == NULL ? fail(env, "the session is closed") : *holder;
}

// release(session)
napi_value module_release(napi_env env, napi_callback_info info) {
  napi_value external;
  Session **holder = read_arguments(env, info, 1, &external) ? read_holder(env, external) : NULL;
  if (holder == NULL || *holder == NULL) return NULL;
  session_release(*holder);
  *holder = NULL;
  return NULL;
}

// names(session, ofOutputs): string[]
napi_value module_names(napi_env env, napi_callback_info info) {
  napi_value arguments[2], list, text;
  bool of_outputs;
  Session *session = read_arguments(env, info, 2, arguments) ? read_session(env, arguments[0]) : NULL;
  if (session == NULL) return NULL;
  if (napi_get_value_bool(env, arguments[1], &of_outputs) != napi_ok) return fail(env, "expected a boolean");
  size_t count = of_outputs ? session->output_count : session->input_count;
  const Port *ports = session->ports + (of_outputs ? session->input_count : 0);
  if (napi_create_array_with_length(env, count, &list) != napi_ok) return fail(env, "out of memory");
  for (size_t i = 0; i < count; i++) {
    if (napi_create_string_utf8(env, ports[i].name, NAPI_AUTO_LENGTH, &text) != napi_ok ||
        napi_set_element(env, list, (uint32_t)i, text) != napi_ok) {
      return fail(env, "out of memory");
    }
  }
  return list;
}

// --- keep(session, layout, arrays) and run(session, layout, arrays) ---

// A port in `layout`: UNUSED_PORT, ALLOCATE or the type of the array that is given for it; its rank; its dimensions.
enum { SLOT = 2 + MAX_RANK, UNUSED_PORT = 0, ALLOCATE = -1 };

static bool read_port(napi_env env, const double *slot, napi_value arrays, uint32_t index, Port *port) {
  if (port->state == KEPT) return true;
  int type = (int)slot[0];
  port->state = type == UNUSED_PORT ? UNUSED : type == ALLOCATE ? ALLOCATED : GIVEN;
  if (port->state != GIVEN) return true;
  port->type = type;
  port->rank = (size_t)slot[1];
  if (port->rank > MAX_RANK) return fail(env, "a tensor has too many dimensions") != NULL;
  for (size_t i = 0; i < port->rank; i++) port->dims[i] = (int64_t)slot[2 + i];
  napi_value array;
  if (napi_get_element(env, arrays, index, &array) != napi_ok) return fail(env, "expected an array") != NULL;
  return read_array(env, array, &port->data, &port->bytes);
}

// Tells an output's layout, and puts its bytes in a fresh ArrayBuffer in `arrays`. The bytes are copied: an ArrayBuffer
// over the runtime's memory takes longer to make if it is small, and is not freed before the thread's event loop runs
// again.
static bool hand_out(napi_env env, double *slot, napi_value arrays, uint32_t index, const Port *port) {
  slot[0] = port->type;
  slot[1] = (double)port->rank;
  for (size_t i = 0; i < port->rank; i++) slot[2 + i] = (double)port->dims[i];
  void *copy;
  napi_value buffer;
  if (napi_create_arraybuffer(env, port->bytes, &copy, &buffer) != napi_ok) return fail(env, "out of memory") != NULL;
  if (port->bytes > 0) memcpy(copy, port->data, port->bytes);
  return napi_set_element(env, arrays, index, buffer) == napi_ok || fail(env, "expected an array") != NULL;
}

static bool read_ports(napi_env env, Session *session, const double *layout, napi_value arrays) {
  uint32_t ports = (uint32_t)(session->input_count + session->output_count);
  for (uint32_t i = 0; i < ports; i++) {
    if (!read_port(env, layout + i * SLOT, arrays, i, &session->ports[i])) return false;
  }
  return true;
}

static bool keep_inputs(napi_env env, Session *session, double *layout, napi_value arrays) {
  if (!read_ports(env, session, layout, arrays)) return false;
  OrtStatus *failure = session_keep(session);
  return failure == NULL || fail_with(env, failure) != NULL;
}

static bool run_session(napi_env env, Session *session, double *layout, napi_value arrays) {
  if (!read_ports(env, session, layout, arrays)) return false;
  OrtStatus *failure = session_run(session);
  if (failure != NULL) return fail_with(env, failure) != NULL;
  uint32_t inputs = (uint32_t)session->input_count;
  for (uint32_t i = inputs; i < inputs + session->output_count; i++) {
    const Port *port = &session->ports[i];
    if (port->state == ALLOCATED && !hand_out(env, layout + i * SLOT, arrays, i, port)) return false;
  }
  return true;
}

typedef bool Use(napi_env env, Session *session, double *layout, napi_value arrays);

static napi_value use_session(napi_env env, napi_callback_info info, Use *use) {
  napi_value arguments[3];
  Session *session = read_arguments(env, info, 3, arguments) ? read_session(env, arguments[0]) : NULL;
  if (session == NULL) return NULL;
  void *layout;
  size_t bytes = (session->input_count + session->output_count) * SLOT * sizeof(double);
  if (!read_exact(env, arguments[1], bytes, &layout)) return NULL;
  use(env, session, layout, arguments[2]);
  session_finish(session);
  return NULL;
}

napi_value module_keep(napi_env env, napi_callback_info info) { return use_session(env, info, keep_inputs); }

napi_value module_run(napi_env env, napi_callback_info info) { return use_session(env, info, run_session); }
