// `npm pack`, installed into an empty folder: what is in there, and that nothing runs or is downloaded beside it.

import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, normalize, relative } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { nativeModule, nativeModuleMissing } from "../../src/graph/native/native-module.ts";
import { emptyEnvironment, filesBelow, MOST_BYTES, npm, type Packed, packed, run, sizeOf } from "./packed.ts";

/** What the tests look at of CycloneDX 1.5. */
interface Bill {
  serialNumber: string;
  metadata: { component: { "bom-ref": string } };
  components: {
    "bom-ref": string;
    name: string;
    version: string;
    description?: string;
    hashes: { alg: string; content: string }[];
    licenses: unknown[];
  }[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

let made: Packed;
beforeAll(async () => {
  made = await packed();
});

describe("the installed package", () => {
  it("takes at most 250 MB with everything it depends on", () => {
    const size = sizeOf(dirname(made.folder));
    expect(size).toBeGreaterThan(100e6);
    expect(size).toBeLessThanOrEqual(MOST_BYTES);
  });

  it("has no package that runs a script when it is installed", () => {
    const manifests = filesBelow(dirname(made.folder)).filter((file) =>
      /node_modules[\\/](@[^\\/]+[\\/])?[^\\/]+[\\/]package\.json$/.test(file),
    );
    expect(manifests.length).toBeGreaterThan(50);
    const scripted = manifests.filter((file) => {
      const { scripts = {} } = JSON.parse(readFileSync(file, "utf8")) as { scripts?: Record<string, string> };
      return ["preinstall", "install", "postinstall"].some((name) => name in scripts);
    });
    expect(scripted.map((file) => relative(made.folder, file))).toEqual([]);
    expect(filesBelow(dirname(made.folder)).filter((file) => file.endsWith("binding.gyp"))).toEqual([]);
  });

  it("says what it consists of: every package that is installed with it, and what it carries, with digests", () => {
    const bill: Bill = JSON.parse(readFileSync(join(made.folder, "sbom.json"), "utf8"));
    expect(bill).toMatchObject({ bomFormat: "CycloneDX", specVersion: "1.5", version: 1 });
    expect(bill.serialNumber).toMatch(/^urn:uuid:[0-9a-f-]{36}$/);
    const lock = JSON.parse(readFileSync(join(dirname(made.folder), ".package-lock.json"), "utf8"));
    // the bill has the versions that were tested; npm may choose later ones
    const installed = Object.keys(lock.packages).map((path) => path.split("node_modules/").at(-1)!);
    expect(installed.length).toBeGreaterThan(50);
    const refs = bill.components.map((component) => component["bom-ref"]);
    const names = new Set(bill.components.map(({ name }) => name));
    expect(installed.filter((name) => name !== "flywheel" && !names.has(name))).toEqual([]);
    expect(new Set(refs).size).toBe(refs.length);

    const bundled = readFileSync(join(made.folder, "dist/web/licenses.txt"), "utf8").match(/^\S+ \d+\.\d+\.\d+$/gm)!;
    const runtime = JSON.parse(readFileSync(join(process.cwd(), "node_modules/onnxruntime-node/package.json"), "utf8"));
    const carried = bill.components.filter(({ description }) => /runtime\/|dist\/web/.test(description ?? ""));
    expect(carried.map(({ name, version }) => `${name} ${version}`).sort()).toEqual(
      [...bundled, `onnxruntime-node ${runtime.version}`].sort(),
    );
    for (const { name, hashes, licenses } of bill.components) {
      expect(hashes[0], name).toMatchObject({ alg: "SHA-512", content: expect.stringMatching(/^[0-9a-f]{128}$/) });
      expect(licenses.length, name).toBeGreaterThan(0);
    }

    // The graph has every part, and nothing else. What users do not get is no part.
    const root = bill.metadata.component["bom-ref"];
    expect(bill.dependencies.map(({ ref }) => ref).sort()).toEqual([root, ...refs].sort());
    const reached = new Set([root]);
    for (const ref of reached)
      for (const on of bill.dependencies.find((one) => one.ref === ref)!.dependsOn) reached.add(on);
    expect([...reached].sort()).toEqual([root, ...refs].sort());
    expect(refs.filter((ref) => /^(vitest|typescript|@aws-sdk\/)/.test(ref))).toEqual([]);
  });

  it("carries ONNX Runtime for four platforms, unchanged, with all that its binding loads", () => {
    const runtime = join(made.folder, "runtime/onnxruntime-node");
    const original = join(process.cwd(), "node_modules/onnxruntime-node");
    const notice = readFileSync(join(runtime, "NOTICE.md"), "utf8");
    const library = { linux: "libonnxruntime.so.1", darwin: "libonnxruntime.1.dylib", win32: "onnxruntime.dll" };
    for (const platform of ["linux/x64", "linux/arm64", "darwin/arm64", "win32/x64"]) {
      const needed = library[platform.split("/")[0] as keyof typeof library];
      const folder = `bin/napi-v6/${platform}`;
      expect(readdirSync(join(runtime, folder)).sort(), platform).toEqual([needed, "onnxruntime_binding.node"].sort());
      expect(readFileSync(join(runtime, folder, "onnxruntime_binding.node")).includes(needed), platform).toBe(true);
      for (const name of [needed, "onnxruntime_binding.node"]) {
        const bytes = readFileSync(join(runtime, folder, name));
        expect(bytes.equals(readFileSync(join(original, folder, name))), `${folder}/${name}`).toBe(true);
        expect(notice).toContain(`${createHash("sha256").update(bytes).digest("hex")}  ${folder}/${name}`);
      }
    }
    expect(notice).toContain("MIT License");
  });

  it("carries the native module for every kind of processor, and uses it where it runs", async () => {
    const files = filesBelow(join(made.folder, "native")).map((file) => relative(made.folder, file));
    const wanted = ["linux-arm64/neon", "linux-x64/avx2", "linux-x64/avx512"];
    expect(files.sort()).toEqual(wanted.map((name) => normalize(`native/prebuilt/${name}.node`)));
    const env = emptyEnvironment();
    const { out } = await run(made.command, ["doctor", "--json", "--port", "0"], made.folder, env);
    const { checks } = JSON.parse(out).machine as { checks: { check: string; status: string; detail: string }[] };
    const expected =
      nativeModule === null
        ? { status: "warning", detail: expect.stringContaining(nativeModuleMissing) }
        : { status: "ok", detail: expect.stringMatching(/^native/) };
    expect(checks.find(({ check }) => check === "kernels")).toMatchObject(expected);
  });

  it("has the types of what it exports and no sources, maps or recipes", () => {
    const { exports } = JSON.parse(readFileSync(join(made.folder, "package.json"), "utf8")) as {
      exports: Record<string, string | { types: string; default: string }>;
    };
    const files = filesBelow(made.folder).map((file) => relative(made.folder, file).replaceAll("\\", "/"));
    for (const target of Object.values(exports).flatMap((entry) =>
      typeof entry === "string" ? entry : Object.values(entry),
    )) {
      expect(files).toContain(target.slice(2));
    }
    expect(files.filter((file) => /\.map$|^src\/|^dist\/.*\.test\.|\/recipe[/.]|__pycache__/.test(file))).toEqual([]);
  });

  it("runs as npx flywheel in its folder, and after a global install", async () => {
    const env = emptyEnvironment();
    const cwd = dirname(dirname(made.folder));
    expect((await npm(["exec", "--no", "--", "flywheel", "--version"], cwd)).out).toMatch(/^\d+\.\d+\.\d+\n$/);
    const prefix = mkdtempSync(join(tmpdir(), "flywheel-global-"));
    await npm(["install", "--global", "--prefix", prefix, made.tarball], prefix);
    const command = process.platform === "win32" ? join(prefix, "flywheel.cmd") : join(prefix, "bin/flywheel");
    expect((await run(command, ["--version"], prefix, env)).out).toMatch(/^\d+\.\d+\.\d+\n$/);
    const { out } = await run(command, ["serve", "--help"], prefix, env);
    expect(out).toContain("--max-model-len");
  });
});
