// Writes sbom.json before `npm pack`: what the package consists of, in CycloneDX. That is what npm installs with it, what the
// bundle of the page contains (dist/web), and ONNX Runtime, which the package carries (runtime.mjs).
//   node packaging/sbom.mjs             --remove after `npm pack`
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const FILE = join(ROOT, "sbom.json");
const read = (file) => readFileSync(join(ROOT, file), "utf8");

if (process.argv[2] === "--remove") rmSync(FILE, { force: true });
else writeFileSync(FILE, `${JSON.stringify(billOf(), null, 2)}\n`);

function billOf() {
  // with --omit dev, npm leaves out everything that a development dependency needs as well
  const options = { cwd: ROOT, encoding: "utf8", shell: process.platform === "win32", maxBuffer: 2 ** 26 };
  const args = ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only", "--include", "dev"];
  const bill = JSON.parse(execFileSync("npm", args, options));
  const { name, version, dependencies } = JSON.parse(read("package.json"));
  const { packages } = JSON.parse(read("package-lock.json"));
  const installed = new Set(
    Object.entries(packages)
      .filter(([path, { dev, devOptional, link }]) => path.startsWith("node_modules/") && !dev && !devOptional && !link)
      .map(([path, entry]) => `${path.split("node_modules/").at(-1)}@${entry.version}`),
  );
  const carried = carriedPackages(packages);
  const isPart = (ref) => installed.has(ref) || carried.has(ref);
  const root = `${name}@${version}`;
  const direct = (ref) => carried.has(ref) || Object.hasOwn(dependencies, ref.slice(0, ref.lastIndexOf("@")));
  bill.metadata.component.name = name;
  bill.components = bill.components
    .filter((component) => isPart(component["bom-ref"]))
    .map((component) => {
      const description = carried.get(component["bom-ref"]);
      return description === undefined ? component : { ...component, description, scope: "required", properties: [] };
    });
  bill.dependencies = bill.dependencies
    .filter(({ ref }) => ref === root || isPart(ref))
    .map(({ ref, dependsOn }) => ({
      ref,
      dependsOn: dependsOn.filter((on) => isPart(on) && (ref !== root || direct(on))),
    }));
  const rest = bill.dependencies.find(({ ref }) => ref === root).dependsOn;
  for (const ref of carried.keys()) if (!rest.includes(ref)) rest.push(ref);
  return bill;
}

/** What the tarball contains of other packages: where, by their references. */
function carriedPackages(packages) {
  const carried = new Map();
  const ref = (name) => `${name}@${packages[`node_modules/${name}`].version}`;
  carried.set(ref("onnxruntime-node"), "Parts of it, unchanged, in runtime/");
  // the heading of each licence names what is bundled
  for (const [, name] of read("dist/web/licenses.txt").matchAll(/^((?:@[\w-]+\/)?[\w.-]+) \d+\.\d+\.\d+$/gm)) {
    carried.set(ref(name), "Bundled in dist/web");
  }
  return carried;
}
