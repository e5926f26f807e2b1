// The package as users get it: made by `npm pack` from a copy of the checkout, and installed into an empty folder with an
// empty home, without the project's .npmrc. Made once per test run and shared between test files.

import { type ChildProcess, execFile, spawn } from "node:child_process";
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { runFolder } from "../temporary-folder.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** What `npm pack` reads. Not dist/, which it builds: other tests run from the one in the checkout at this moment. */
const SOURCES = [
  ...["bin", "docs", "models/flywheel-mini", "native/prebuilt", "packaging", "src", "templates", "trainer", "web"],
  ...[
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "tsconfig.build.json",
    ".npmrc",
  ],
];

export interface Packed {
  tarball: string;
  /** Of the installed package. */
  folder: string;
  /** The command in node_modules/.bin. */
  command: string;
  /** What npm said when it installed the tarball. */
  installed: Output;
}

/** Waits if another test file is making it. */
export async function packed(): Promise<Packed> {
  const folder = join(runFolder() ?? tmpdir(), "packed");
  const result = join(folder, "result.json");
  if (!claimed(folder)) {
    // Not expect.poll, which works in tests only; this may be called in a hook.
    while (!existsSync(result)) await sleep(200);
    const made = JSON.parse(readFileSync(result, "utf8")) as Packed | { failed: string };
    if ("failed" in made) throw new Error(`another test file could not make the package: ${made.failed}`);
    return made;
  }
  try {
    const made = await make(folder);
    writeFileSync(result, JSON.stringify(made));
    return made;
  } catch (error) {
    writeFileSync(result, JSON.stringify({ failed: (error as Error).message }));
    throw error;
  }
}

function claimed(folder: string): boolean {
  try {
    mkdirSync(folder);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return false;
  }
}

async function make(folder: string): Promise<Packed> {
  const copy = join(folder, "checkout");
  const isSource = (path: string) => !/[\\/](node_modules|dist|__pycache__)$/.test(path);
  for (const source of SOURCES.filter((path) => existsSync(join(ROOT, path)))) {
    cpSync(join(ROOT, source), join(copy, source), { recursive: true, filter: isSource });
  }
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"), "junction");
  const packing = await npm(["pack", "--pack-destination", folder], copy);
  const tarball = join(folder, packing.out.trim().split("\n").at(-1)!);
  const project = join(folder, "installed");
  mkdirSync(project);
  // Without the prefix, npm would take a folder above with packages for the project.
  const installed = await npm(["install", "--prefix", project, tarball], project);
  const modules = join(project, "node_modules");
  return { tarball, folder: join(modules, "flywheel"), command: join(modules, ".bin", "flywheel"), installed };
}

/** A home without anything, and no other programs than Node and npm, with the shell that npm runs scripts in. */
export function emptyEnvironment(): NodeJS.ProcessEnv {
  const home = mkdtempSync(join(tmpdir(), "flywheel-home-"));
  const path = process.platform === "win32" ? process.env.PATH : onlyNode(join(home, "bin"));
  return { HOME: home, USERPROFILE: home, TMPDIR: tmpdir(), PATH: path };
}

function onlyNode(folder: string): string {
  mkdirSync(folder);
  symlinkSync(process.execPath, join(folder, "node"));
  symlinkSync("/bin/sh", join(folder, "sh"));
  for (const program of ["npm", "npx"]) {
    const found = (process.env.PATH ?? "").split(delimiter).map((each) => join(each, program));
    symlinkSync(realpathSync(found.find((each) => existsSync(each))!), join(folder, program));
  }
  return folder;
}

/** How npm reaches the registry from this machine. */
const CONNECTION = ["registry", "cafile", "proxy", "https-proxy"];

/**
 * The registry and the cache of this machine, so that what `npm ci` downloaded is not downloaded again. A registry that cannot
 * be reached fails within seconds, and says so.
 */
async function npmEnvironment(): Promise<NodeJS.ProcessEnv> {
  const asked = await run("npm", ["config", "list", "--json"], ROOT, process.env);
  const settings = JSON.parse(asked.out) as Record<string, unknown>;
  const connection = CONNECTION.filter((name) => typeof settings[name] === "string" && settings[name] !== "").map(
    (name) => [`npm_config_${name.replaceAll("-", "_")}`, settings[name] as string],
  );
  const { NODE_EXTRA_CA_CERTS } = process.env;
  return {
    ...emptyEnvironment(),
    ...Object.fromEntries(connection),
    ...(NODE_EXTRA_CA_CERTS === undefined ? {} : { NODE_EXTRA_CA_CERTS }),
    npm_config_cache: settings.cache as string,
    npm_config_fetch_retry_mintimeout: "1000",
    npm_config_fetch_retry_maxtimeout: "3000",
    npm_config_prefer_offline: "true",
    npm_config_update_notifier: "false",
  };
}

export async function npm(args: readonly string[], cwd: string, more: NodeJS.ProcessEnv = {}): Promise<Output> {
  return run("npm", args, cwd, { ...(await npmEnvironment()), ...more });
}

export interface Output {
  out: string;
  err: string;
}

/** Throws with everything that it printed if it fails. */
export function run(file: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv): Promise<Output> {
  return new Promise((resolve, reject) => {
    execFile(file, args, { cwd, env, maxBuffer: 64 * 2 ** 20 }, (error, out, err) => {
      if (error === null) resolve({ out, err });
      else reject(new Error(`${file} ${args.join(" ")}: ${error.message}\n${out}\n${err}`));
    });
  });
}

export interface Started {
  process: ChildProcess;
  /** Everything on standard output so far. */
  out(): string;
  exit: Promise<number | null>;
}

/** Resolves when its output matches. */
export async function startAndWait(
  file: string,
  args: readonly string[],
  options: { cwd: string; env: NodeJS.ProcessEnv },
  until: RegExp,
): Promise<Started> {
  const child = spawn(file, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  let [out, err] = ["", ""];
  child.stdout.on("data", (bytes) => {
    out += bytes;
  });
  child.stderr.on("data", (bytes) => {
    err += bytes;
  });
  const exit = new Promise<number | null>((resolve) => child.on("exit", resolve));
  await expect.poll(() => until.test(out) || child.exitCode !== null || child.signalCode !== null).toBe(true);
  if (!until.test(out)) throw new Error(`${file} ${args.join(" ")} ended early:\n${out}\n${err}`);
  return { process: child, out: () => out, exit };
}

/** The most that it may take, with everything that it depends on. */
export const MOST_BYTES = 250e6;

function entriesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).map((entry) =>
    join(entry.parentPath, entry.name),
  );
}

export function filesBelow(folder: string): string[] {
  return entriesBelow(folder).filter((path) => lstatSync(path).isFile());
}

/** Bytes of the files, or of the blocks that they and their folders take on the disk, whichever is more. */
export function sizeOf(folder: string): number {
  const entries = entriesBelow(folder).map((path) => lstatSync(path));
  const bytes = entries.filter((entry) => entry.isFile()).reduce((sum, { size }) => sum + size, 0);
  return Math.max(
    bytes,
    entries.reduce((sum, { blocks }) => sum + blocks * 512, 0),
  );
}
