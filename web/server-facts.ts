// What does not change while a server runs, and who is signed in: asked for after signing in, and again when a lost server is
// back, because it may be another one.
import { effect, signal } from "@preact/signals";
import { getJson, recoveries } from "./server.ts";
import { apiKey } from "./session.ts";

export interface ServerFacts {
  version: string;
  started_at: string;
  model: {
    id: string;
    context_length: number;
    parameters: number | null;
    layers: number | null;
    hidden_size: number | null;
  };
  dtype: string | null;
  threads: number | null;
  limits: { max_model_len: number; max_n: number; max_logprobs: number };
  /** By field of a request. Fields that it does not name are off by default. */
  sampling_defaults: Record<string, number | null>;
  parsers: { auto_tool_choice: boolean };
  features: { training: boolean; adapters: boolean; prefix_cache: boolean };
}

export interface Principal {
  id: string;
  name: string;
  scopes: ("inference" | "training" | "admin")[];
  expires_at: string | null;
  workspace: { id: string; name: string };
  /** Signed in by a link. */
  session: boolean;
  /** Of the workspace, in bytes; null without training. */
  storage: { limit: number; used: number } | null;
}

/** Null until the server has told. */
export const facts = signal<ServerFacts | null>(null);
export const me = signal<Principal | null>(null);

export function followServer(): void {
  effect(() => {
    recoveries.value;
    if (apiKey.value === null) {
      me.value = null;
      return;
    }
    const noted = () => {}; // server.ts has noted a refused key or a lost server
    getJson<ServerFacts>("/server").then((found) => {
      facts.value = found;
    }, noted);
    getJson<Principal>("/me").then((found) => {
      me.value = found;
    }, noted);
  });
}

/** Whether the signed-in user may use what needs a scope. */
export function may(scope: Principal["scopes"][number]): boolean {
  const scopes = me.value?.scopes ?? [];
  return scopes.includes(scope) || scopes.includes("admin");
}
