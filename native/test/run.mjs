// Compiles the kernels with each test of this folder for this processor, and runs it: npm run test:native. The kernels are
// tested without Node and without ONNX Runtime; src/graph/native/ tests the module. Needs gcc, as build.mjs does.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { compile, sourceFiles, TOOLS } from "../build.mjs";

const FOLDER = dirname(fileURLToPath(import.meta.url));
/** The sources that know Node or ONNX Runtime. */
const IS_BINDING = /^(arguments|module|operation|runtime|weights)/;

const scratch = mkdtempSync(join(tmpdir(), "flywheel-native-test-"));
try {
  const kernels = sourceFiles()
    .filter((name) => name.endsWith(".c") && !IS_BINDING.test(name))
    .flatMap((name) => compile(name, process.arch, scratch));
  for (const test of readdirSync(FOLDER).filter((name) => name.endsWith(".c"))) {
    const [object] = compile(join("test", test), process.arch, scratch);
    const program = join(scratch, basename(test, ".c"));
    execFileSync(`${TOOLS[process.arch]}gcc`, ["-o", program, object, ...kernels, "-lpthread", "-lm"], {
      stdio: "inherit",
    });
    console.log(basename(test, ".c"));
    execFileSync(program, { stdio: "inherit" });
  }
} finally {
  rmSync(scratch, { recursive: true });
}
