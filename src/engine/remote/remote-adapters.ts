// Loads adapters on one server. A name stands for one content and is never reused, so "already loaded" is a success.
// On a shared folder the files may become visible seconds after they were written; such loads are repeated.

import { setTimeout as delay } from "node:timers/promises";
import type { HttpClient, Reply } from "./http-client.ts";
import { adapterName } from "./vllm-dialect.ts";

/** How long a folder may stay invisible, the first wait between two tries, and how long one load may take. */
const VISIBLE_MS = 120_000;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 8000;
const LOAD_MS = 120_000;

export class RemoteAdapters {
  readonly #client: HttpClient;
  readonly #onNotice: (message: string, details: Record<string, unknown>) => void;
  /** Names that somebody here has asked for. */
  readonly #names = new Set<string>();

  constructor(client: HttpClient, onNotice: (message: string, details: Record<string, unknown>) => void) {
    this.#client = client;
    this.#onNotice = onNotice;
  }

  /** Rejects with a message for the user. */
  async load(version: string, folder: string, signal: AbortSignal): Promise<void> {
    const name = adapterName(version);
    this.#names.add(name);
    const patience = performance.now() + VISIBLE_MS;
    for (let wait = FIRST_WAIT_MS; ; wait = Math.min(2 * wait, LONGEST_WAIT_MS)) {
      const reply = await this.#post("load", { lora_name: name, lora_path: folder }, signal);
      if (reply.status === 200 || isLoadedAlready(reply)) return;
      if (isFull(reply) && (await this.#makeRoom(signal))) continue;
      const mayPass = reply.status === 404 || reply.status >= 500;
      if (!mayPass || isNoSuchRoute(reply) || performance.now() + wait > patience) throw refusal(reply, folder);
      if (wait === FIRST_WAIT_MS) {
        this.#onNotice("an engine cannot load an adapter yet", { folder, why: messageOf(reply.text) });
      }
      await delay(wait, undefined, { signal });
    }
  }

  /** Unloads an adapter that another run of this server loaded and that nobody here has asked for. false: none. */
  async #makeRoom(signal: AbortSignal): Promise<boolean> {
    const { text } = await this.#client.whole("GET", "/v1/models", { timeoutMs: LOAD_MS, signal });
    const stale = namesIn(text).find((name) => name.startsWith(adapterName("")) && !this.#names.has(name));
    if (stale === undefined) return false;
    return (await this.#post("unload", { lora_name: stale }, signal)).status === 200;
  }

  async unload(version: string, signal: AbortSignal): Promise<void> {
    const name = adapterName(version);
    this.#names.delete(name);
    await this.#post("unload", { lora_name: name }, signal);
  }

  #post(what: "load" | "unload", body: Record<string, string>, signal: AbortSignal): Promise<Reply> {
    return this.#client.whole("POST", `/v1/${what}_lora_adapter`, { body, timeoutMs: LOAD_MS, signal });
  }
}

function isLoadedAlready({ status, text }: Reply): boolean {
  return status === 400 && /already (?:been )?loaded/i.test(text);
}

/** Flywheel says so. vLLM makes room itself. */
function isFull({ status, text }: Reply): boolean {
  return (status === 400 || status === 503) && /\bslots?\b/.test(text);
}

/** FastAPI's answer for a path that does not exist: vLLM without VLLM_ALLOW_RUNTIME_LORA_UPDATING. */
function isNoSuchRoute({ status, text }: Reply): boolean {
  return (status === 404 || status === 405) && /"detail":\s*"(?:Not Found|Method Not Allowed)"/.test(text);
}

function refusal(reply: Reply, folder: string): Error {
  if (isNoSuchRoute(reply)) {
    return new Error(
      "the engine loads no adapters: start vLLM with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True and --enable-lora",
    );
  }
  const text = messageOf(reply.text);
  if (reply.status !== 404) return new Error(`the engine refuses the adapter: ${text}`);
  return new Error(
    `the engine does not see the folder ${folder}: it must be shared with the engine, at the same path (${text})`,
  );
}

function messageOf(text: string): string {
  try {
    return String((JSON.parse(text) as { error: { message: string } }).error.message);
  } catch {
    return text.slice(0, 200);
  }
}

function namesIn(models: string): string[] {
  try {
    return (JSON.parse(models) as { data: { id: string }[] }).data.map(({ id }) => id);
  } catch {
    return [];
  }
}
