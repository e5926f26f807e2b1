import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Fastify from "fastify";
import { describe, expect, it } from "vitest";
import type { Log } from "../observe/log.ts";
import { notFound } from "./http/errors.ts";
import { bestEncoding } from "./http/openapi.ts";
import type { Service } from "./service.ts";
import { PAGE_PATHS, readWebFiles, registerWebFiles } from "./web.route.ts";

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

function serve(folder: string) {
  const warnings: string[] = [];
  const app = Fastify();
  const service: Pick<Service, "log" | "missingPage"> = {
    log: { warn: (text: string) => warnings.push(text) } as unknown as Log,
    missingPage: null,
  };
  notFound(app, (...args) => service.missingPage?.(...args) ?? null);
  app.addHook("onRequest", async (_request, reply) => {
    reply.header("access-control-allow-origin", "*"); // as headers.ts does for every route
  });
  registerWebFiles(app, service, folder);
  return { app, warnings };
}

function builtPage(): string {
  const folder = mkdtempSync(join(tmpdir(), "flywheel-web-"));
  mkdirSync(join(folder, "assets"));
  for (const name of ["index.html", "licenses.txt", "assets/index-1.js"]) {
    writeFileSync(join(folder, name), name);
    writeFileSync(join(folder, `${name}.br`), `${name} small`);
  }
  return folder;
}

describe("the routes of the page", () => {
  it("answer every address of a page with the same file, and unknown ones with 404", async () => {
    const { app } = serve(builtPage());
    for (const path of PAGE_PATHS) {
      const reply = await app.inject(path.replaceAll(/:\w+/g, "x"));
      expect([path, reply.statusCode, reply.body]).toEqual([path, 200, "index.html"]);
    }
    for (const path of ["/policies/x/y", "/index.html.br", "/assets/../package.json", "/nothing"]) {
      expect([path, (await app.inject(path)).statusCode]).toEqual([path, 404]);
    }
  });

  it("answer a browser with the page where there is nothing, and programs with JSON", async () => {
    const { app } = serve(builtPage());
    const html = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
    const page = await app.inject({ url: "/nothing/here?x=1", headers: html });
    expect([page.statusCode, page.body]).toEqual([404, "index.html"]);
    expect(page.headers["content-security-policy"]).toContain("default-src 'none'");
    for (const [url, headers] of [
      ["/nothing", {}],
      ["/nothing", { accept: "*/*" }],
      ["/v1/nothing", html],
      ["/v1", html],
    ] as const) {
      const reply = await app.inject({ url, headers });
      expect([url, reply.statusCode, reply.json().detail]).toEqual([url, 404, "Not Found"]);
    }
    expect((await app.inject({ method: "POST", url: "/nothing", headers: html })).json().detail).toBe("Not Found");
    expect((await app.inject({ method: "POST", url: "/access", headers: html })).statusCode).toBe(405);
  });

  it("let nothing run that is not ours, and give other origins nothing", async () => {
    const { app } = serve(builtPage());
    for (const path of ["/", "/assets/index-1.js", "/licenses.txt"]) {
      const { headers } = await app.inject(path);
      expect(headers["content-security-policy"]).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; " +
          "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
      );
      expect(headers).toMatchObject({
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
      });
      expect(headers["access-control-allow-origin"]).toBe(undefined);
    }
  });

  it("let browsers keep hashed files for ever and ask about the others", async () => {
    const { app } = serve(builtPage());
    const hashed = await app.inject("/assets/index-1.js");
    expect(hashed.headers["cache-control"]).toBe("public, max-age=31536000, immutable");
    expect(hashed.headers["content-type"]).toBe("text/javascript; charset=utf-8");
    const index = await app.inject("/");
    expect(index.headers["cache-control"]).toBe("no-cache");
    const known = await app.inject({
      url: "/access",
      headers: { "if-none-match": `"other", W/${index.headers.etag}` },
    });
    expect([known.statusCode, known.body]).toEqual([304, ""]);
  });

  it("send the compressed form to those who take it", async () => {
    const { app } = serve(builtPage());
    const small = await app.inject({ url: "/", headers: { "accept-encoding": "gzip, br" } });
    expect([small.headers["content-encoding"], small.headers.vary, small.body]).toEqual([
      "br",
      "accept-encoding",
      "index.html small",
    ]);
    const plain = await app.inject("/");
    expect([plain.headers["content-encoding"], plain.body]).toEqual([undefined, "index.html"]);
  });

  it("are left out with one warning when the page was not built", async () => {
    const { app, warnings } = serve(join(tmpdir(), "flywheel-not-built"));
    expect((await app.inject("/")).statusCode).toBe(404);
    expect(warnings).toEqual([expect.stringContaining("npm run build")]);
  });
});
