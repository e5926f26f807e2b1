// Compiles the kernels with each test of this folder for each kind of vectors of this platform, and runs it: npm run test:native. The kernels are
// tested without Node and without ONNX Runtime; src/graph/native/ tests the module. Needs gcc, as build.mjs does.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { compile, sourceFiles, TARGETS } from "../build.mjs";

const FOLDER = dirname(fileURLToPath(import.meta.url));
/** The sources that know Node or ONNX Runtime. */
const IS_BINDING = /^(node|runtime)\//;

/** Status of a program whose kernels this processor cannot run (need-vectors.h). */
const SKIPPED = 3;

const platform = `${process.platform}-${process.arch}`;
for (const [kind, target] of Object.entries(TARGETS)) if (target.platform === platform) testKind(kind, target.tools);

function testKind(kind, tools) {
  const scratch = mkdtempSync(join(tmpdir(), "flywheel-native-test-"));
  try {
    const kernels = sourceFiles()
      .filter((name) => name.endsWith(".c") && !IS_BINDING.test(name))
      .flatMap((name) => compile(name, kind, scratch));
    for (const test of readdirSync(FOLDER).filter((name) => name.endsWith(".c"))) {
      const [object] = compile(`test/${test}`, kind, scratch);
      const program = join(scratch, basename(test, ".c"));
      execFileSync(`${tools}gcc`, ["-o", program, object, ...kernels, "-lpthread", "-lm"], { stdio: "inherit" });
      console.log(`${kind} ${basename(test, ".c")}`);
      const { status } = spawnSync(program, { stdio: "inherit" });
      if (status !== 0 && status !== SKIPPED) process.exitCode = 1;
    }
  } finally {
    rmSync(scratch, { recursive: true });
  }
}
