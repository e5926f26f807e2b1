// Copies the parts of ONNX Runtime that the package carries from node_modules to runtime/, before `npm pack`. Why the
// package carries them: docs/reference/installation.md.
//   node packaging/runtime.mjs                  for every platform that Flywheel runs on
//   node packaging/runtime.mjs linux/x64        for one
//   node packaging/runtime.mjs --remove         after `npm pack`: a checkout runs on node_modules
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const FROM = join(ROOT, "node_modules/onnxruntime-node");
const TO = join(ROOT, "runtime/onnxruntime-node");
const BINARIES = "bin/napi-v6";
/** Those of README.md. */
const PLATFORMS = ["linux/x64", "linux/arm64", "darwin/arm64", "win32/x64"];
/**
 * Left out: a second copy of libonnxruntime.1.dylib, of which the binding names only that one; and what Windows needs for
 * GPUs, which onnxruntime.dll loads only when a session asks for one.
 */
const UNUSED = /\/(libonnxruntime\.\d+\.\d+\.\d+\.dylib|DirectML\.dll|dxcompiler\.dll|dxil\.dll)$/;

const [given] = process.argv.slice(2);
rmSync(dirname(TO), { recursive: true, force: true });
if (given !== "--remove") carry(given === undefined ? PLATFORMS : [given]);

function carry(platforms) {
  const manifest = JSON.parse(readFileSync(join(FROM, "package.json"), "utf8"));
  const files = [
    ...["dist/index.js", "dist/backend.js", "dist/binding.js", "dist/version.js"],
    ...platforms.flatMap((platform) =>
      readdirSync(join(FROM, BINARIES, platform)).map((file) => `${BINARIES}/${platform}/${file}`),
    ),
  ].filter((file) => !UNUSED.test(file));
  for (const file of files) {
    mkdirSync(dirname(join(TO, file)), { recursive: true });
    cpSync(join(FROM, file), join(TO, file));
  }
  // Without scripts: nothing of it runs when Flywheel is installed.
  const { name, version, license, repository, main } = manifest;
  writeFileSync(join(TO, "package.json"), `${JSON.stringify({ name, version, license, repository, main }, null, 2)}\n`);
  writeFileSync(join(TO, "NOTICE.md"), notice(version, files));
  const bytes = files.reduce((sum, file) => sum + statSync(join(TO, file)).size, 0);
  console.log(`runtime/ has ONNX Runtime ${version} for ${platforms.join(", ")}: ${Math.round(bytes / 1e6)} MB`);
}

function notice(version, files) {
  const sums = files.map((file) => {
    const sum = createHash("sha256")
      .update(readFileSync(join(TO, file)))
      .digest("hex");
    return `${sum}  ${file}`;
  });
  return `# ONNX Runtime ${version}

These files are Microsoft's, unchanged, from the npm package onnxruntime-node ${version}. Flywheel did not build them. It carries them so
that its installation runs no script, downloads no CUDA libraries and leaves out what it does not use: other platforms and libraries for
GPUs.

SHA-256, to compare with that package:

\`\`\`
${sums.join("\n")}
\`\`\`

ONNX Runtime has the MIT License:

Copyright (c) Microsoft Corporation

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the
"Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to
the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR
ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH
THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

Its libraries contain third-party code; the list is ThirdPartyNotices.txt in the repository of ONNX Runtime.
`;
}
