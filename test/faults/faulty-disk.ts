// A disk whose calls can fail: node:fs as the code under test sees it, for files below one folder. Node passes a change of its
// own module on to whoever imported from it.

import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { Readable } from "node:stream";
import type { Call, FaultPoints } from "./fault-points.ts";

type AnyFunction = (...given: unknown[]) => unknown;
type Functions = Record<string, AnyFunction>;

const SYNC: Record<string, Call["kind"]> = {
  ...{ statSync: "read", lstatSync: "read", readdirSync: "read", readFileSync: "read", realpathSync: "read" },
  ...{
    mkdirSync: "change",
    writeFileSync: "change",
    appendFileSync: "change",
    renameSync: "change",
    linkSync: "change",
  },
  ...{ copyFileSync: "change", utimesSync: "change", chmodSync: "change", rmSync: "removal", unlinkSync: "removal" },
};
const OF_DESCRIPTORS: Record<string, Call["kind"]> = {
  ...{ readSync: "read", fstatSync: "read", writeSync: "change", ftruncateSync: "removal" },
  fsyncSync: "change",
};
const PROMISED: Record<string, Call["kind"]> = {
  ...{ stat: "read", readdir: "read", readFile: "read", mkdir: "change", writeFile: "change", appendFile: "change" },
  ...{ rename: "change", copyFile: "change", link: "change", rm: "removal", unlink: "removal" },
};
const OF_HANDLES: Record<string, Call["kind"]> = {
  ...{ read: "read", stat: "read", write: "change", writeFile: "change", appendFile: "change", sync: "change" },
};

/** How it works without faults, for what is not under test. */
export const SOUND_DISK = { ...fs };

/** Lets calls for files below `root` fail. Returns a function that puts the disk in order again. */
export function breakDisk(root: string, faults: FaultPoints): () => void {
  const [whole, promised] = [fs as unknown as Functions, fs.promises as unknown as Functions];
  const undo: (() => void)[] = [];
  const replace = (functions: Functions, name: string, by: (sound: AnyFunction) => AnyFunction) => {
    const sound = functions[name]!;
    functions[name] = by(sound);
    undo.push(() => {
      functions[name] = sound;
    });
  };
  const isHere = (path: unknown) => typeof path === "string" && path.startsWith(root);
  const meet = (name: string, kind: Call["kind"]) => faults.meet({ device: "disk", name, kind });
  /** Descriptors of files below the root, and what they were opened for. */
  const open = new Map<unknown, Call["kind"]>();

  for (const [name, kind] of Object.entries(SYNC)) {
    replace(whole, name, (sound) => (...given) => {
      const fault = isHere(given[0]) ? meet(name, kind) : null;
      if (fault && !fault.afterwards) throw fault.error;
      const answer = sound(...given);
      if (fault) throw fault.error;
      return answer;
    });
  }
  // Node says so, too, when it cannot look
  replace(whole, "existsSync", (sound) => (path) => {
    if (isHere(path) && meet("existsSync", "read")) return false;
    return sound(path);
  });
  replace(whole, "openSync", (sound) => (...given) => {
    const fault = isHere(given[0]) ? meet("openSync", kindOf(given[1])) : null;
    if (fault && !fault.afterwards) throw fault.error;
    const descriptor = sound(...given);
    if (fault) {
      SOUND_DISK.closeSync(descriptor as number);
      throw fault.error;
    }
    if (isHere(given[0])) open.set(descriptor, kindOf(given[1]));
    return descriptor;
  });
  for (const [name, kind] of Object.entries(OF_DESCRIPTORS)) {
    replace(whole, name, (sound) => (...given) => {
      const fault = open.has(given[0]) ? meet(name, kind) : null;
      if (fault && !fault.afterwards) throw fault.error;
      const answer = sound(...given);
      if (fault) throw fault.error;
      return answer;
    });
  }
  // a descriptor is closed even if that fails
  replace(whole, "closeSync", (sound) => (descriptor) => {
    const kind = open.get(descriptor);
    const fault = kind === undefined ? null : meet("closeSync", kind);
    open.delete(descriptor);
    sound(descriptor);
    if (fault) throw fault.error;
  });
  replace(whole, "createReadStream", (sound) => (...given) => {
    const fault = isHere(given[0]) ? meet("createReadStream", "read") : null;
    if (!fault) return sound(...given);
    return new Readable({ read: (): void => void 0, construct: (done) => done(fault.error) });
  });
  for (const [name, kind] of Object.entries(PROMISED)) {
    replace(promised, name, (sound) => async (...given) => {
      const fault = isHere(given[0]) ? meet(`promises.${name}`, kind) : null;
      if (fault && !fault.afterwards) throw fault.error;
      const answer = await sound(...given);
      if (fault) throw fault.error;
      return answer;
    });
  }
  replace(promised, "open", (sound) => async (...given) => {
    const fault = isHere(given[0]) ? meet("promises.open", kindOf(given[1])) : null;
    if (fault && !fault.afterwards) throw fault.error;
    const handle = (await sound(...given)) as Functions & { close: () => Promise<void> };
    if (fault) {
      await handle.close();
      throw fault.error;
    }
    if (isHere(given[0])) breakHandle(handle, kindOf(given[1]), meet);
    return handle;
  });
  syncBuiltinESMExports();
  return () => {
    for (const each of undo.reverse()) each();
    syncBuiltinESMExports();
  };
}

function breakHandle(
  handle: Functions,
  openedFor: Call["kind"],
  meet: (name: string, kind: Call["kind"]) => ReturnType<FaultPoints["meet"]>,
) {
  for (const [name, kind] of Object.entries(OF_HANDLES)) {
    const sound = handle[name]!.bind(handle);
    handle[name] = async (...given) => {
      const fault = meet(`handle.${name}`, kind);
      if (fault && !fault.afterwards) throw fault.error;
      const answer = await sound(...given);
      if (fault) throw fault.error;
      return answer;
    };
  }
  const close = handle.close!.bind(handle);
  handle.close = async () => {
    const fault = meet("handle.close", openedFor);
    await close();
    if (fault) throw fault.error;
  };
}

/** Of opening a file: flags that can make one. */
function kindOf(flags: unknown): Call["kind"] {
  return typeof flags === "string" && /[wa+]/.test(flags) ? "change" : "read";
}
