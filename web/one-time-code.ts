// The one-time code of a sign-in link: #code=… The fragment never reaches a server or a log, and leaves the address bar and
// the history before anything else happens.

/** The code in a fragment such as "#code=abc"; null if there is none. */
export function codeIn(fragment: string): string | null {
  return new URLSearchParams(fragment.replace(/^#/, "")).get("code") || null;
}

/** Takes the code out of the address bar. */
export function takeCode(): string | null {
  const code = codeIn(location.hash);
  if (code !== null) history.replaceState(null, "", location.pathname + location.search);
  return code;
}
