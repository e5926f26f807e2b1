// Whether a server of ours answers at an address.

const PATIENCE_MS = 3000;

/** The version of the Flywheel server there; null = nothing answers, or something else does. */
export async function answeringVersion(url: string): Promise<string | null> {
  if (!url.startsWith("http")) return null;
  try {
    const response = await fetch(`${url}/version`, { signal: AbortSignal.timeout(PATIENCE_MS) });
    const { version } = (await response.json()) as { version?: unknown };
    return typeof version === "string" ? version : null;
  } catch {
    return null; // nobody listens there, or speaks something else
  }
}
