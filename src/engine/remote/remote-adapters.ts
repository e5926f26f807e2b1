// Loads adapters on one server. A name stands for one content and is never reused, so "already loaded" is a success.
// On a shared folder the files may become visible seconds after they were written; such loads are repeated.

import { setTimeout as delay } from "node:timers/promises";
import { NoAdapterSlot } from "../../model/lora/adapter-host.ts";
import type { HttpClient, Reply } from "./http-client.ts";
import { ADAPTER_PREFIX, adapterName } from "./vllm-dialect.ts";

/** How long a folder may stay invisible, the first wait between two tries, and how long one load may take. */
const VISIBLE_MS = 120_000;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 8000;
const LOAD_MS = 120_000;
/** An adapter of another server that no request has used for so long may go. That server loads it again if it needs it. */
const ABANDONED_SECONDS = 60;

export class RemoteAdapters {
  readonly #client: HttpClient;
  readonly #front: string;
  readonly #onNotice: (message: string, details: Record<string, unknown>) => void;
  /** Names that somebody here has asked for. */
  readonly #names = new Set<string>();

  /** `front`: this server, among all in front of the replica. */
  constructor(
    client: HttpClient,
    front: string,
    onNotice: (message: string, details: Record<string, unknown>) => void,
  ) {
    this.#client = client;
    this.#front = front;
    this.#onNotice = onNotice;
  }

  /** Rejects with a message for the user. */
  async load(version: string, folder: string, signal: AbortSignal): Promise<void> {
    const name = this.#name(version);
    this.#names.add(name);
    try {
      await this.#load(name, folder, signal);
    } catch (error) {
      // nobody asks for it any more, but the server may have it all the same
      this.#names.delete(name);
      throw error;
    }
  }

  async #load(name: string, folder: string, signal: AbortSignal): Promise<void> {
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

  /** Unloads what an earlier run of this server left, or what a server that may be gone loaded. false: nothing. */
  async #makeRoom(signal: AbortSignal): Promise<boolean> {
    const reply = await this.#client.whole("GET", "/v1/engine", { timeoutMs: LOAD_MS, signal });
    const stale = adaptersIn(reply)
      .filter(({ name }) => name?.startsWith(ADAPTER_PREFIX) && !this.#names.has(name))
      .sort((a, b) => b.idle_seconds - a.idle_seconds)
      .find(({ name, idle_seconds }) => name!.startsWith(this.#name("")) || idle_seconds >= ABANDONED_SECONDS);
    if (stale === undefined) return false;
    const { status } = await this.#post("unload", { lora_name: stale.name! }, signal);
    // gone already: another load has made this room
    return status === 200 || status === 404;
  }

  async unload(version: string, signal: AbortSignal): Promise<void> {
    const name = this.#name(version);
    this.#names.delete(name);
    await this.#post("unload", { lora_name: name }, signal);
  }

  #name(version: string): string {
    return adapterName(this.#front, version);
  }

  #post(what: "load" | "unload", body: Record<string, string>, signal: AbortSignal): Promise<Reply> {
    return this.#client.whole("POST", `/v1/${what}_lora_adapter`, { body, timeoutMs: LOAD_MS, signal });
  }
}

function isLoadedAlready({ status, text }: Reply): boolean {
  return status === 400 && /already (?:been )?loaded/i.test(text);
}

/** Only Flywheel says so. vLLM makes room itself. */
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
  // of other servers, which give them back when they do not need them
  if (isFull(reply)) return new NoAdapterSlot(`the engine refuses the adapter: ${text}`, true);
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

interface LoadedAdapter {
  name: string | null;
  idle_seconds: number;
}

/** Of a Flywheel server's GET /v1/engine. */
function adaptersIn({ status, text }: Reply): LoadedAdapter[] {
  if (status !== 200) return [];
  const { adapters } = JSON.parse(text) as { adapters: (LoadedAdapter | null)[] };
  return adapters.filter((adapter) => adapter !== null);
}
