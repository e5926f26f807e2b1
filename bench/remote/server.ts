// The measured server, as a process of its own: `server.js` with the paced engine, `server.js URL` with a remote one.

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LoadModel } from "../../src/app/serve.ts";
import { PacedEngine } from "./paced-engine.ts";

/** A server starts from dist/, because it looks for package.json beside it. */
const dist = new URL("../../../../dist/", import.meta.url);
const { loadModel } = (await import(`${dist}app/load-model.js`)) as typeof import("../../src/app/load-model.ts");
const { startServer } = (await import(`${dist}app/serve.js`)) as typeof import("../../src/app/serve.ts");
const { loadConfig } = (await import(`${dist}config/load.js`)) as typeof import("../../src/config/load.ts");

const [url] = process.argv.slice(2);
const flags = {
  model: new URL("../../../../models/flywheel-mini", import.meta.url).pathname,
  port: 0,
  data: mkdtempSync(join(tmpdir(), "flywheel-bench-")),
  apiKey: ["k"],
  logLevel: "error",
  training: false,
  maxNumSeqs: 256,
  threads: 1,
  ...(url === undefined ? {} : { engineUrl: [url] }),
};

/** Only the text side of the real model is used. */
const withPacedEngine: LoadModel = async (...given) => {
  const model = await loadModel(...given);
  await model.engine.close();
  return { ...model, engine: new PacedEngine(model.engine.info.vocabSize) };
};

const server = await startServer(loadConfig({ env: {}, flags }), url === undefined ? withPacedEngine : loadModel);
process.send!({ url: server.url });
process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send!({ cpu: user + system });
});
process.on("disconnect", () => process.exit());
