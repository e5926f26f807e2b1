// Compiles the native module, once for each kind of vectors: node native/build.mjs [avx512] [avx2] [neon], default: all. Needs
// gcc for each processor (Debian: gcc, gcc-x86-64-linux-gnu, gcc-aarch64-linux-gnu) and Node's headers. The results,
// native/prebuilt/*/*.node, are in the repository: the same sources and compiler make the same bytes.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const FOLDER = dirname(fileURLToPath(import.meta.url));
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
const AVX512 = ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mfma"];
/**
 * What the module is compiled for. tools: what the names of the compilers begin with. files: by the end of a name, the flags of
 * files that need the kind's instructions. Files with another of these ends are left out; all others run on every processor.
 */
export const TARGETS = {
  avx512: {
    platform: "linux-x64",
    tools: "x86_64-linux-gnu-",
    files: {
      "lanes.c": AVX512,
      "vnni.c": [...AVX512, "-mavx512vnni"],
      "amx.c": [...AVX512, "-mamx-tile", "-mamx-int8"],
    },
  },
  avx2: {
    platform: "linux-x64",
    tools: "x86_64-linux-gnu-",
    files: { "lanes.c": ["-mavx2", "-mfma", "-mf16c"] },
  },
  neon: {
    platform: "linux-arm64",
    tools: "aarch64-linux-gnu-",
    files: { "lanes.c": ["-march=armv8.2-a+dotprod"], "neon.c": ["-march=armv8.2-a+dotprod"] },
  },
};
const SPECIAL_ENDS = new Set(Object.values(TARGETS).flatMap(({ files }) => Object.keys(files)));

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

/** Paths in this folder, of all but tests. */
export function sourceFiles() {
  return readdirSync(FOLDER, { recursive: true })
    .map((path) => path.replaceAll("\\", "/"))
    .filter((path) => /\.[ch]$/.test(path) && !path.startsWith("test/"))
    .sort();
}

function nodeHeaders() {
  const beside = join(dirname(dirname(process.execPath)), "include", "node");
  return existsSync(join(beside, "node_api.h")) ? beside : "/usr/include/node";
}

function build(kind) {
  const { platform, tools } = TARGETS[kind];
  const scratch = mkdtempSync(join(tmpdir(), "flywheel-build-"));
  const target = join(FOLDER, "prebuilt", platform, `${kind}.node`);
  mkdirSync(dirname(target), { recursive: true });
  try {
    const objects = sourceFiles()
      .filter((name) => name.endsWith(".c"))
      .flatMap((name) => compile(name, kind, scratch));
    const linking = ["-shared", "-Wl,--build-id=none", "-Wl,-z,relro,-z,now", "-Wl,--as-needed", "-s"];
    execFileSync(`${tools}gcc`, [...linking, "-o", target, ...objects, "-ldl"], { stdio: "inherit" });
  } finally {
    rmSync(scratch, { recursive: true });
  }
  checkGlibc(target, tools);
  console.log(target);
}

/** The object file of a source in this folder, or none if it is for other kinds. */
export function compile(name, kind, scratch) {
  const { tools, files } = TARGETS[kind];
  const end = [...SPECIAL_ENDS].find((each) => name.endsWith(each));
  if (end !== undefined && files[end] === undefined) return [];
  const object = join(scratch, `${name.replaceAll("/", "-")}.o`);
  const defines = [`-DVECTORS_${kind.toUpperCase()}`, `-DSOURCES="${sourcesHash()}"`];
  const flags = [...FLAGS, `-I${FOLDER}`, ...defines, ...(files[end] ?? [])];
  execFileSync(`${tools}gcc`, [...flags, "-c", "-o", object, join(FOLDER, name)], { stdio: "inherit" });
  return [object];
}

function checkGlibc(file, tools) {
  const symbols = execFileSync(`${tools}objdump`, ["-T", file], { encoding: "utf8" });
  for (const [line, major, minor] of symbols.matchAll(/.*GLIBC_(\d+)\.(\d+).*/g)) {
    const newer = Number(major) - NEWEST_GLIBC[0] || Number(minor) - NEWEST_GLIBC[1];
    if (newer > 0) throw new Error(`needs a newer glibc than ${NEWEST_GLIBC.join(".")}: ${line}`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const wanted = process.argv.slice(2);
  for (const kind of wanted.length > 0 ? wanted : Object.keys(TARGETS)) build(kind);
}
