// Who is signed in. The key stays in this tab (sessionStorage), or on this device (localStorage) if the user says so. Both
// belong to the origin with its port; a cookie would go to every other program of the machine that has a port.
import { signal } from "@preact/signals";
import { ApiError, Connection } from "../src/client/http.ts";

const STORAGE_KEY = "flywheel.key";

export type Keep = "tab" | "device";

interface Session {
  key: string;
  principal: { name: string; workspace: { name: string } };
}

/** The key that requests carry; null: nobody is signed in. */
export const apiKey = signal<string | null>(stored());
/** Why the sign-in form is shown again; null if there is nothing to say. */
export const signedOutBecause = signal<string | null>(null);

function stored(): string | null {
  return sessionStorage.getItem(STORAGE_KEY) ?? localStorage.getItem(STORAGE_KEY);
}

/** Checks a key and keeps it. Throws what the server says against it. */
export async function signIn(key: string, keep: Keep): Promise<void> {
  await connect(key).json("GET", "/me");
  remember(key, keep);
}

/**
 * Swaps the one-time code of a link for a key, and asks before it is used: whoever made the link may want others to work, and
 * to paste their secrets, in a workspace that is theirs.
 */
export async function signInByCode(code: string): Promise<void> {
  const { key, principal } = await connect("").json<Session>("POST", "/sessions", { body: { code } });
  if (confirm(`Sign in as ${principal.name}, in the workspace ${principal.workspace.name}?`)) remember(key, "tab");
  else await endSession(key);
}

/** Ends the session of a link on the server too. A token that was pasted stays valid. */
export async function signOut(isSession: boolean): Promise<void> {
  const key = apiKey.value;
  forget(null);
  if (key !== null && isSession) await endSession(key);
}

/** The key expires by itself if the server cannot be reached. */
async function endSession(key: string): Promise<void> {
  await connect(key)
    .request("DELETE", "/sessions/current")
    .catch(() => {});
}

/** Forgets the key here. */
export function forget(because: string | null): void {
  sessionStorage.removeItem(STORAGE_KEY);
  localStorage.removeItem(STORAGE_KEY);
  signedOutBecause.value = because;
  apiKey.value = null;
}

function remember(key: string, keep: Keep): void {
  sessionStorage.removeItem(STORAGE_KEY);
  localStorage.removeItem(STORAGE_KEY);
  (keep === "tab" ? sessionStorage : localStorage).setItem(STORAGE_KEY, key);
  signedOutBecause.value = null;
  apiKey.value = key;
}

/** Whoever signs out on this device does so in all of its tabs. */
export function followOtherTabs(): void {
  addEventListener("storage", ({ key, newValue }) => {
    const isGone = key === null || (key === STORAGE_KEY && newValue === null);
    if (isGone && apiKey.value !== null && stored() === null) forget("You signed out in another tab.");
  });
}

/** One request, without retries: the page shows a lost server and asks again when it is back. */
export function connect(key: string): Connection {
  return new Connection({ baseUrl: location.origin, apiKey: key, maxRetries: 0 });
}

/** The sentence of an error, without the status that the client puts before it. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error instanceof ApiError ? error.message.replace(/^\d{3}: /, "") : error.message;
}
