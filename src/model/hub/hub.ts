// Finds the folder of a model: a path that exists, or "org/name[@revision]" in the Hugging Face cache, downloaded first
// if it is not complete there. A complete snapshot is used without asking the network whether the branch has moved.
// Only the files that serving needs are fetched, weights last, so that a snapshot with weights has the rest too.
// Environment: HF_HUB_CACHE, HF_HOME, HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE.

import { join } from "node:path";
import type { HubApiError, ListFileEntry } from "@huggingface/hub";
import { isFolder } from "../checkpoint/checkpoint-file.ts";
import { INDEX_FILE, SINGLE_FILE } from "../checkpoint/weight-files.ts";
import {
  type Environment,
  HubError,
  hubCacheFolder,
  isCommit,
  missingFiles,
  RepositoryCache,
  shardNames,
} from "./hub-cache.ts";
import { downloadBlob } from "./hub-download.ts";

export interface HubOptions {
  env?: Environment;
  onProgress?: (progress: DownloadProgress) => void;
  signal?: AbortSignal;
  /** false: configuration and tokenizer only. */
  withWeights?: boolean;
  /** First wait before a failed download is retried. */
  retryDelayMs?: number;
}

export interface DownloadProgress {
  file: string;
  /** Bytes received, including those of an earlier run. */
  done: number;
  total: number;
}

export interface ResolvedModel {
  folder: string;
  /** null when the model was given as a folder. */
  origin: { repository: string; revision: string; commit: string } | null;
}

const API_TIMEOUT_MS = 30_000;
const smallFiles =
  /^(?:(?:config|generation_config|special_tokens_map|added_tokens|tokenizer[\w.-]*)\.json|chat_template[\w.-]*)$/;

export async function resolveModel(model: string, options: HubOptions = {}): Promise<ResolvedModel> {
  if (isFolder(model)) return { folder: model, origin: null };
  if (/\.gguf$/i.test(model)) {
    throw new HubError(
      `"${model}" is a GGUF file: give the path of one that exists, or a folder or organisation/name with safetensors`,
    );
  }
  const match = /^([A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*)(?:@([\w][\w./-]*))?$/.exec(model);
  if (match === null || model.includes("..") || model.includes("//")) {
    throw new HubError(
      `"${model}" is neither a folder that exists nor a model on the hub (organisation/name[@revision])`,
    );
  }
  return new HubRequest(match[1]!, match[2] ?? "main", options).resolve();
}

class HubRequest {
  readonly #repository: string;
  readonly #revision: string;
  readonly #options: HubOptions;
  readonly #env: Environment;
  readonly #cacheFolder: string;
  readonly #cache: RepositoryCache;
  readonly #endpoint: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #signal: AbortSignal;

  constructor(repository: string, revision: string, options: HubOptions) {
    this.#repository = repository;
    this.#revision = revision;
    this.#options = options;
    this.#env = options.env ?? process.env;
    this.#cacheFolder = hubCacheFolder(this.#env);
    this.#cache = new RepositoryCache(this.#cacheFolder, repository);
    this.#endpoint = (this.#env.HF_ENDPOINT || "https://huggingface.co").replace(/\/+$/, "");
    this.#headers = this.#env.HF_TOKEN ? { authorization: `Bearer ${this.#env.HF_TOKEN.trim()}` } : {};
    this.#signal = options.signal ?? new AbortController().signal;
  }

  get #withWeights(): boolean {
    return this.#options.withWeights ?? true;
  }

  async resolve(): Promise<ResolvedModel> {
    const cached = this.#cache.commitOf(this.#revision);
    const missing = cached === null ? null : missingFiles(this.#cache.snapshot(cached), this.#withWeights);
    if (cached !== null && missing?.length === 0) return this.#resolved(cached);
    if (/^(1|true|yes|on)$/i.test(this.#env.HF_HUB_OFFLINE ?? "")) {
      const state = missing === null ? "is not in" : `is incomplete (without ${missing.join(", ")}) in`;
      throw new HubError(
        `${this.#label()} ${state} the cache folder ${this.#cacheFolder}, and HF_HUB_OFFLINE forbids downloading it`,
      );
    }
    return this.#resolved(await this.#download());
  }

  #resolved(commit: string): ResolvedModel {
    const origin = { repository: this.#repository, revision: this.#revision, commit };
    return { folder: this.#cache.snapshot(commit), origin };
  }

  async #download(): Promise<string> {
    const { commit, files } = await this.#listing();
    if (!files.has("config.json")) {
      throw new HubError(`${this.#label()} has no config.json, so it is not a transformers model`);
    }
    for (const name of files.keys()) if (smallFiles.test(name)) await this.#fetchFile(commit, name, files);
    if (this.#withWeights) {
      for (const name of await this.#weightFiles(commit, files)) await this.#fetchFile(commit, name, files);
    }
    this.#cache.rememberCommit(this.#revision, commit);
    return commit;
  }

  async #listing(): Promise<{ commit: string; files: Map<string, ListFileEntry> }> {
    // Imported here, because serving from a folder or a complete cache does not need it.
    const { HubApiError, listFiles, modelInfo } = await import("@huggingface/hub");
    const access = { hubUrl: this.#endpoint, fetch: this.#apiFetch };
    try {
      const info = await modelInfo({
        ...access,
        name: this.#repository,
        revision: this.#revision,
        additionalFields: ["sha"],
      });
      if (!isCommit(info.sha)) throw new HubError(`${this.#endpoint} names no commit for ${this.#label()}`);
      const files = new Map<string, ListFileEntry>();
      for await (const entry of listFiles({ ...access, repo: this.#repository, revision: info.sha })) {
        if (entry.type === "file") files.set(entry.path, entry);
      }
      return { commit: info.sha, files };
    } catch (cause) {
      this.#signal.throwIfAborted();
      if (cause instanceof HubError) throw cause;
      throw new HubError(cause instanceof HubApiError ? this.#refusal(cause) : this.#unreachable(cause), { cause });
    }
  }

  /** Names of the weight files in the order to fetch them. Fetches the index of sharded weights first. */
  async #weightFiles(commit: string, files: Map<string, ListFileEntry>): Promise<string[]> {
    if (files.has(SINGLE_FILE)) return [SINGLE_FILE];
    if (!files.has(INDEX_FILE)) {
      const others = [...files.keys()].filter((name) => /\.(bin|pth|pt|gguf|safetensors)$/.test(name)).slice(0, 3);
      const hint = others.length > 0 ? ` (it has ${others.join(", ")})` : "";
      throw new HubError(`${this.#label()} has no ${SINGLE_FILE} or ${INDEX_FILE}${hint}`);
    }
    await this.#fetchFile(commit, INDEX_FILE, files);
    return shardNames(join(this.#cache.snapshot(commit), INDEX_FILE));
  }

  async #fetchFile(commit: string, name: string, files: Map<string, ListFileEntry>): Promise<void> {
    const entry = files.get(name);
    if (entry === undefined) throw new HubError(`${this.#label()} has no file ${name}, though its index lists it`);
    const hash = entry.lfs?.oid ?? entry.oid ?? "";
    const total = entry.lfs?.size ?? entry.size;
    if (!/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(hash) || !Number.isSafeInteger(total)) {
      throw new HubError(`${this.#endpoint} gives no usable checksum and size for ${name} of ${this.#label()}`);
    }
    let reported = -1;
    const report = (done: number) => {
      reported = done;
      this.#options.onProgress?.({ file: name, done, total });
    };
    try {
      await downloadBlob({
        url: `${this.#endpoint}/${this.#repository}/resolve/${commit}/${encodeURIComponent(name)}`,
        headers: this.#headers,
        path: this.#cache.blob(hash),
        name: `${name} of ${this.#label()}`,
        size: total,
        hash,
        onProgress: report,
        signal: this.#signal,
        retryDelayMs: this.#options.retryDelayMs ?? 1000,
      });
      this.#cache.publish(commit, name, hash);
    } catch (cause) {
      this.#signal.throwIfAborted();
      if (cause instanceof HubError) throw cause;
      throw new HubError(`storing ${name} in ${this.#cache.folder}: ${(cause as Error).message}`, { cause });
    }
    // The blob may already exist from another snapshot.
    if (reported !== total) report(total);
  }

  /** fetch with the token and a time limit, for the library's API calls. */
  readonly #apiFetch: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers);
    for (const [name, value] of Object.entries(this.#headers)) headers.set(name, value);
    const signal = AbortSignal.any([this.#signal, AbortSignal.timeout(API_TIMEOUT_MS)]);
    return fetch(input, { ...init, headers, signal });
  };

  #unreachable(cause: unknown): string {
    const inner = (cause as Error).cause as NodeJS.ErrnoException | undefined;
    const reason = inner?.code ?? inner?.message ?? (cause as Error).message;
    const here = `${this.#label()} is not complete in the cache folder ${this.#cacheFolder}`;
    return `${here}, and ${this.#endpoint} cannot be reached (${reason})`;
  }

  #refusal({ statusCode, message }: HubApiError): string {
    const page = `${this.#endpoint}/${this.#repository}`;
    const token = this.#env.HF_TOKEN
      ? "the token in HF_TOKEN does not open it"
      : "set HF_TOKEN if it is private or gated";
    switch (statusCode) {
      case 401:
        return `${this.#label()} does not exist or needs a token: ${token}`;
      case 403:
        return `${this.#label()} is not open to this account (${token}); its conditions are at ${page}`;
      case 404:
        return `${this.#label()} does not exist at ${this.#endpoint}: check the name and the revision`;
      default:
        return `${this.#endpoint} refused ${this.#label()} with status ${statusCode}: ${message}`;
    }
  }

  #label(): string {
    return this.#revision === "main" ? this.#repository : `${this.#repository}@${this.#revision}`;
  }
}
