// Loads the adapters of a dead engine thread into its replacement. Folders may have changed meanwhile, so a folder
// keeps a slot only if it still has the content that requests will ask for.

import type { AdapterInfo } from "../../model/lora/adapter-host.ts";
import type { LoadedAdapter } from "./messages.ts";

interface Host {
  loadAdapter(folder: string): Promise<AdapterInfo>;
  unloadAdapter(version: string): Promise<void>;
}

/** `onFault`: called for each adapter that no folder holds any more. */
export async function reloadAdapters(
  adapters: readonly LoadedAdapter[],
  host: Host,
  onFault: (error: Error) => void,
): Promise<void> {
  const wanted = new Set(adapters.map(({ version }) => version));
  for (const { version, folders } of adapters) {
    const causes: unknown[] = [];
    for (const folder of folders) {
      try {
        const found = (await host.loadAdapter(folder)).version;
        if (found === version) break;
        if (!wanted.has(found)) await host.unloadAdapter(found);
        throw new Error("the folder has other content now");
      } catch (error) {
        causes.push(error);
      }
    }
    if (causes.length < folders.length) continue;
    const message = `adapter ${version} was not loaded again from ${folders.join(", ")}`;
    onFault(new Error(message, { cause: causes.at(-1) }));
  }
}
