// The version of the package, read once from package.json, one level above both src/ and dist/.
import { readFileSync } from "node:fs";

const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  version: string;
};

export const PACKAGE_VERSION: string = manifest.version;
