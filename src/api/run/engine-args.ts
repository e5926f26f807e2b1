// Parameters for the engines of other servers: kv_transfer_params, engine_xargs (vllm_xargs) and, in generate requests,
// extra_args. They can name machines that a server of --engine-url then talks to, or load plug-ins of its operator, so
// only members that --allowed-engine-args names are passed on.
import type { GenerateRequest } from "../../engine/contract.ts";

/** Generate requests may put any JSON into engine_xargs. */
export interface EngineArgFields {
  kv_transfer_params?: Readonly<Record<string, unknown>> | null | undefined;
  engine_xargs?: Readonly<Record<string, unknown>> | null | undefined;
  vllm_xargs?: Readonly<Record<string, unknown>> | null | undefined;
}

type Extra = NonNullable<GenerateRequest["extra"]>;

/** What the engine gets of them. */
export function engineArgs(body: EngineArgFields, allowed: readonly string[]): Extra {
  const kvTransferParams = only(body.kv_transfer_params, allowed);
  const engineArgs = only({ ...body.vllm_xargs, ...body.engine_xargs }, allowed);
  return { ...(kvTransferParams && { kvTransferParams }), ...(engineArgs && { engineArgs }) };
}

/** What it does not get, such as "kv_transfer_params.remote_host". */
export function leftOutArgs(body: EngineArgFields, allowed: readonly string[]): string[] {
  const { kv_transfer_params, engine_xargs, vllm_xargs } = body;
  return Object.entries({ kv_transfer_params, engine_xargs, vllm_xargs }).flatMap(([field, args]) =>
    Object.keys(args ?? {}).flatMap((name) => (allowed.includes(name) ? [] : [`${field}.${name}`])),
  );
}

/** null: nothing is left. */
function only(args: EngineArgFields["engine_xargs"], allowed: readonly string[]) {
  const names = allowed.filter((name) => Object.hasOwn(args ?? {}, name));
  return names.length === 0 ? null : Object.fromEntries(names.map((name) => [name, args![name]]));
}
