// Publishes a step with a large adapter to the bucket of the first argument, from the folder of the second.

import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openBucket } from "../../dist/training/files/s3/open-bucket.js";
import { SharedBucket } from "../../dist/training/files/s3/shared-bucket.js";
import { StepFolders } from "../../dist/training/files/step-folders.js";

const [, , bucket, folder] = process.argv;
const log = { debug() {}, info() {}, warn() {}, error() {} };
const shared = new SharedBucket(await openBucket({ bucket, prefix: "p/" }), { folder, cacheBytes: 2 ** 30, log });
const workspace = new StepFolders(folder, shared);
const staging = workspace.newStaging("m", "one");
mkdirSync(staging);
writeFileSync(join(staging, "adapter_config.json"), "{}");
writeFileSync(join(staging, "adapter_model.safetensors"), randomBytes(33 * 2 ** 20));
await workspace.publish(staging, "m", 1);
