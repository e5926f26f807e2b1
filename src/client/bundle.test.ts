import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build, type Rolldown } from "vite";
import { expect, it } from "vitest";

const folder = fileURLToPath(new URL(".", import.meta.url));
const entries = readdirSync(folder).filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"));

it("bundles for browsers: nothing of Node is imported or expected as a global", async () => {
  const output = (await build({
    configFile: false,
    logLevel: "silent",
    root: folder,
    build: {
      write: false,
      minify: false,
      // whatever cannot be bundled stays an import, to be found below
      rolldownOptions: { external: /^node:/ },
      lib: { entry: entries.map((name) => `${folder}${name}`), formats: ["es"] },
    },
  })) as Rolldown.RolldownOutput[];
  const chunks = output.flatMap((one) => one.output).filter((one) => one.type === "chunk");
  expect(chunks.length).toBeGreaterThan(2);
  expect(chunks.flatMap(({ imports }) => imports).filter((name) => name.startsWith("node:"))).toEqual([]);
  const code = chunks.map((chunk) => chunk.code).join("\n");
  expect(code).toContain("FlywheelClient");
  expect(code).not.toMatch(/\b(?:process|Buffer|require|setImmediate|__dirname)\b\s*[.(]/);
});
