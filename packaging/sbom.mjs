// Writes sbom.json before `npm pack`: what the package consists of, in CycloneDX. npm lists what is installed with it; ONNX Runtime, which
// the package carries (runtime.mjs), is added.
//   node packaging/sbom.mjs             --remove after `npm pack`
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const FILE = join(ROOT, "sbom.json");

if (process.argv[2] === "--remove") rmSync(FILE, { force: true });
else write();

function write() {
  const options = { cwd: ROOT, encoding: "utf8", shell: process.platform === "win32", maxBuffer: 2 ** 26 };
  const args = ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only", "--omit", "dev"];
  const bill = JSON.parse(execFileSync("npm", args, options));
  bill.metadata.component.name = "flywheel";
  bill.components.push(carriedRuntime());
  writeFileSync(FILE, `${JSON.stringify(bill, null, 2)}\n`);
}

function carriedRuntime() {
  const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));
  const { version, integrity } = lock.packages["node_modules/onnxruntime-node"];
  const id = `onnxruntime-node@${version}`;
  const digest = Buffer.from(integrity.replace("sha512-", ""), "base64").toString("hex");
  return {
    ...{ "bom-ref": id, type: "library", name: "onnxruntime-node", version, scope: "required", purl: `pkg:npm/${id}` },
    description: "Parts of it, unchanged, in runtime/",
    hashes: [{ alg: "SHA-512", content: digest }],
    licenses: [{ license: { id: "MIT" } }],
  };
}
