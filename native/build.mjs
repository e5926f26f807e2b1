// Compiles the native module: node native/build.mjs [x64] [arm64], default: both. Needs gcc for each (Debian: gcc,
// gcc-x86-64-linux-gnu, gcc-aarch64-linux-gnu) and Node's headers. The results, native/prebuilt/linux-*/flywheel.node, are
// in the repository: the same sources and compiler make the same bytes.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const FOLDER = dirname(fileURLToPath(import.meta.url));
/** What the names of compilers begin with, by architecture. */
export const TOOLS = { x64: "x86_64-linux-gnu-", arm64: "aarch64-linux-gnu-" };
/** The module loads where glibc is at least this old: Debian 10, RHEL 8, Ubuntu 20.04. */
const NEWEST_GLIBC = [2, 28];

const FLAGS = [
  "-O3",
  "-std=gnu11",
  "-Wall",
  "-Wextra",
  "-Werror",
  "-fPIC",
  "-fvisibility=hidden",
  "-ffp-contract=off",
  `-ffile-prefix-map=${FOLDER}=native`,
  `-I${nodeHeaders()}`,
];
const AVX512 = ["f", "bw", "vl", "dq", "vnni"].map((set) => `-mavx512${set}`).concat("-mfma");
/** Files for one kind of processor, by the end of their names. All others are for every processor of an architecture. */
const SPECIAL = [
  { end: "-amx.c", arch: "x64", flags: [...AVX512, "-mamx-tile", "-mamx-int8"] },
  { end: "-avx512.c", arch: "x64", flags: AVX512 },
  { end: "-neon.c", arch: "arm64", flags: ["-march=armv8.2-a+dotprod"] },
];

/** Of all files that the module is compiled from, by name. */
export function sourcesHash() {
  const hash = createHash("sha256");
  for (const name of sourceFiles())
    hash
      .update(`${name}\0`)
      .update(readFileSync(join(FOLDER, name)))
      .update("\0");
  return hash.digest("hex");
}

export function sourceFiles() {
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith(".c") || name.endsWith(".h"))
    .sort();
}

function nodeHeaders() {
  const beside = join(dirname(dirname(process.execPath)), "include", "node");
  return existsSync(join(beside, "node_api.h")) ? beside : "/usr/include/node";
}

function build(arch) {
  const prefix = TOOLS[arch];
  const scratch = mkdtempSync(join(tmpdir(), "flywheel-build-"));
  const target = join(FOLDER, "prebuilt", `linux-${arch}`, "flywheel.node");
  mkdirSync(dirname(target), { recursive: true });
  try {
    const objects = sourceFiles()
      .filter((name) => name.endsWith(".c"))
      .flatMap((name) => compile(name, arch, scratch));
    const linking = ["-shared", "-Wl,--build-id=none", "-Wl,-z,relro,-z,now", "-Wl,--as-needed", "-s"];
    execFileSync(`${prefix}gcc`, [...linking, "-o", target, ...objects, "-ldl"], { stdio: "inherit" });
  } finally {
    rmSync(scratch, { recursive: true });
  }
  checkGlibc(target, prefix);
  console.log(target);
}

/** The object file of a source in this folder, or none if it is for another architecture. */
export function compile(name, arch, scratch) {
  const special = SPECIAL.find(({ end }) => name.endsWith(end));
  if (special && special.arch !== arch) return [];
  const object = join(scratch, `${basename(name, ".c")}.o`);
  const flags = [...FLAGS, `-I${FOLDER}`, ...(special?.flags ?? []), `-DSOURCES="${sourcesHash()}"`];
  execFileSync(`${TOOLS[arch]}gcc`, [...flags, "-c", "-o", object, join(FOLDER, name)], { stdio: "inherit" });
  return [object];
}

function checkGlibc(file, prefix) {
  const symbols = execFileSync(`${prefix}objdump`, ["-T", file], { encoding: "utf8" });
  for (const [line, major, minor] of symbols.matchAll(/.*GLIBC_(\d+)\.(\d+).*/g)) {
    const newer = Number(major) - NEWEST_GLIBC[0] || Number(minor) - NEWEST_GLIBC[1];
    if (newer > 0) throw new Error(`needs a newer glibc than ${NEWEST_GLIBC.join(".")}: ${line}`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const wanted = process.argv.slice(2);
  for (const arch of wanted.length > 0 ? wanted : Object.keys(TOOLS)) build(arch);
}
