// Bundles the page into dist/web: scripts, most of them loaded when their page is shown, one style sheet, hashed names, nothing
// inline, so that the strictest content security policy holds. The compressed forms and the licences are made here too; the
// server only reads files.
// `npm run web` serves the sources with reloading, and passes requests on to the server at FLYWHEEL_URL.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

const root = fileURLToPath(new URL("..", import.meta.url));
const outDir = join(root, "dist/web");
const target = process.env.FLYWHEEL_URL ?? "http://127.0.0.1:8000";

/** What ends up in the bundle. */
const BUNDLED = [
  ...["preact", "@preact/signals", "@preact/signals-core", "uplot"],
  ...["marked", "@speed-highlight/core", "temml"],
];

export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  publicDir: false,
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir,
    emptyOutDir: true,
    target: "es2023",
    assetsInlineLimit: 0,
    modulePreload: false,
    reportCompressedSize: false,
    cssCodeSplit: false,
    rolldownOptions: { checks: { bundlerTimings: false } },
  },
  server: { proxy: { "^/(v1|tokenize|detokenize|health|load|version|metrics|docs|openapi.json)": target } },
  logLevel: "warn",
  plugins: [onlyLines(), finishFiles()],
});

/** Of uPlot the page needs lines only. It keeps the rest in objects, so the bundler cannot leave it out. */
function onlyLines(): Plugin {
  return {
    name: "flywheel-only-lines",
    apply: "build",
    transform(code, id) {
      if (!id.endsWith("/uplot/dist/uPlot.esm.js")) return null;
      const rest = /\(paths\.(?:stepped|bars|spline)\s*=\s*\w+\);|uPlot\.(?:join|tzDate)\s*=\s*\w+;/g;
      const cut = code.replaceAll(rest, "");
      if (code.match(rest)?.length !== 5) this.error("uPlot has another shape than web/vite.config.ts expects");
      return { code: cut, map: null };
    },
  };
}

/** Adds licenses.txt, and a .br and .gz beside every text file. */
function finishFiles(): Plugin {
  return {
    name: "flywheel-finish-files",
    apply: "build",
    writeBundle(_options, bundle) {
      const licences = BUNDLED.map((name) => {
        const folder = join(root, "node_modules", name);
        const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { version: string };
        const text = readFileSync(join(folder, "LICENSE"), "utf8");
        return `${name} ${version}\n\n${text.trim()}\n`;
      });
      writeFileSync(join(outDir, "licenses.txt"), licences.join(`\n${"-".repeat(80)}\n\n`));
      for (const name of [...Object.keys(bundle), "licenses.txt"]) {
        const file = join(outDir, name);
        const bytes = readFileSync(file);
        // Quality 11 would save 3 % more and take longer than the whole bundle.
        const params = { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
        writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params }));
        writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
      }
    },
  };
}
