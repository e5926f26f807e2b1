// Writes what bench/gpu/checks.py needs to know of the fixtures, with paths from here, so that a machine without Node can
// run it: npm run bench:gpu-fixtures -- FILE

import { writeFileSync } from "node:fs";
import { describedFamilies } from "../../test/reference/described-fixtures.ts";

const [file] = process.argv.slice(2);
if (file === undefined) throw new Error("name the file to write");
const text = JSON.stringify(describedFamilies((family) => `test/fixtures/${family}`));
writeFileSync(file, text.replaceAll(`${process.cwd()}/`, ""));
