// Builds a checkout after `npm ci`, and before `npm pack`. npm also runs this for an installed package that another project
// links, as those of `flywheel init` do. That one is built already, and has no sources.
import { execSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../", import.meta.url));
if (existsSync(`${root}src`)) execSync("npm run build", { cwd: root, stdio: "inherit" });
