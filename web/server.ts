// Requests of the signed-in user. A refused key ends the session; a connection that fails raises the banner. The banner goes
// when the server answers again, and `recoveries` tells whoever shows data to ask once more.
import { effect, signal } from "@preact/signals";
import { ApiError, isConnectionFault, type RequestOptions } from "../src/client/http.ts";
import { apiKey, connect, forget, messageOf } from "./session.ts";

/** True while the server does not answer. */
export const isLost = signal(false);
/** How often it came back. */
export const recoveries = signal(0);

const FIRST_LOOK_MS = 500;
const LONGEST_LOOK_MS = 4_000;

export async function getJson<Answer>(path: string, options: RequestOptions = {}): Promise<Answer> {
  return callJson<Answer>("GET", path, options);
}

export async function postJson<Answer>(path: string, body: unknown, options: RequestOptions = {}): Promise<Answer> {
  return callJson<Answer>("POST", path, { ...options, body });
}

/** `path` is below /v1. An answer without a body is null. */
export async function callJson<Answer>(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
  const response = await call(method, path, options);
  return (response.status === 204 ? null : await watched(response.json())) as Answer;
}

/** A successful response with its body unread. */
export function call(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
  return watched(connect(apiKey.value ?? "").request(method, path, options));
}

/** /tokenize and the probes are beside /v1, not below it. */
export function beside(path: string): string {
  return `/..${path}`;
}

/** Passes the promise on; notes what its failure says about the session and the server. */
export async function watched<Value>(promise: Promise<Value>): Promise<Value> {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) forget(messageOf(error));
    if (isConnectionFault(error)) noteLost();
    throw error;
  }
}

export function noteLost(): void {
  if (isLost.value) return;
  isLost.value = true;
  void lookUntilBack();
}

/** Ends when a lost server is back, at once if it is not lost. Rejects when the signal says so. */
export function whenBack(signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = effect(() => {
      if (!isLost.value) queueMicrotask(resolved);
    });
    const resolved = () => {
      end();
      resolve();
    };
    const stopped = () => {
      end();
      reject(signal.reason);
    };
    signal.addEventListener("abort", stopped, { once: true });
  });
}

async function lookUntilBack(): Promise<void> {
  for (let wait = FIRST_LOOK_MS; ; wait = Math.min(wait * 1.5, LONGEST_LOOK_MS)) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    const isBack = await fetch("/load").then(
      ({ ok }) => ok,
      () => false,
    );
    if (isBack) break;
  }
  isLost.value = false;
  recoveries.value += 1;
}
