// The functions about sessions that the module exports.
#ifndef FLYWHEEL_MODULE_H
#define FLYWHEEL_MODULE_H

#include "node/arguments.h"

napi_value module_create_session(napi_env env, napi_callback_info info);
napi_value module_names(napi_env env, napi_callback_info info);
napi_value module_keep(napi_env env, napi_callback_info info);
napi_value module_run(napi_env env, napi_callback_info info);
napi_value module_release(napi_env env, napi_callback_info info);

#endif
