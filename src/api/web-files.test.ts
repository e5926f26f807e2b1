import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { bestEncoding } from "./http/page-file.ts";
import { readWebFiles } from "./web-files.ts";

it("reads files with their compressed forms, and leaves others out", () => {
  const folder = mkdtempSync(join(tmpdir(), "flywheel-web-"));
  expect(readWebFiles(folder)).toBe(null);
  expect(readWebFiles(join(folder, "missing"))).toBe(null);
  mkdirSync(join(folder, "assets"));
  for (const name of ["index.html", "index.html.gz", "assets/a-1.js", "assets/a-1.js.br", "assets/a.map"]) {
    writeFileSync(join(folder, name), name);
  }
  const files = Object.fromEntries(readWebFiles(folder)!.map((file) => [file.name, file]));
  expect(Object.keys(files).sort()).toEqual(["assets/a-1.js", "index.html"]);
  expect(files["index.html"]).toMatchObject({ type: "text/html; charset=utf-8", isHashed: false });
  expect(String(files["index.html"]!.compressed.gzip)).toBe("index.html.gz");
  expect(files["assets/a-1.js"]).toMatchObject({ type: "text/javascript; charset=utf-8", isHashed: true });
  expect(files["assets/a-1.js"]!.etag).not.toBe(files["index.html"]!.etag);
});

it("chooses the smallest form that the client takes", () => {
  const both = { compressed: { br: Buffer.from("b"), gzip: Buffer.from("g") } };
  expect(bestEncoding("gzip, deflate, br, zstd", both)).toBe("br");
  expect(bestEncoding("gzip, br;q=0", both)).toBe("gzip");
  expect(bestEncoding("GZIP;q=0.5", both)).toBe("gzip");
  expect(bestEncoding("identity", both)).toBe(null);
  expect(bestEncoding(undefined, both)).toBe(null);
  expect(bestEncoding("br, gzip", { compressed: {} })).toBe(null);
});
