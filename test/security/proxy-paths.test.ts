// The balancer of deploy/compose hides /metrics and /load, which need no token, however their paths are written.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { need, needing } from "../support/needs.ts";
import { shared } from "../support/shared-server.ts";
import { API_KEY, startTestServer } from "../support/test-server.ts";

const hasHaproxy = spawnSync("haproxy", ["-v"]).status === 0;

// haproxy checks servers without a host name
const server = shared(() => startTestServer({ config: { allowedHosts: ["*"] } }));

/** Sends one request line as it is; the whole reply. */
function ask(port: number, line: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let got = "";
    const socket = connect(port, "127.0.0.1", () =>
      socket.write(
        `${line} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${API_KEY}\r\nconnection: close\r\n\r\n`,
      ),
    );
    socket.on("data", (bytes) => {
      got += String(bytes);
    });
    socket.on("close", () => resolve(got));
    socket.on("error", reject);
  });
}

async function freePort(): Promise<number> {
  const socket = createServer();
  await new Promise<void>((resolve) => socket.listen(0, "127.0.0.1", resolve));
  const { port } = socket.address() as { port: number };
  await new Promise((resolve) => socket.close(resolve));
  return port;
}

needing(need("haproxy", hasHaproxy)).describe("behind haproxy", () => {
  let haproxy: ChildProcess;
  let port: number;

  beforeAll(async () => {
    port = await freePort();
    const shipped = readFileSync(new URL("../../deploy/compose/haproxy.cfg", import.meta.url), "utf8");
    const here = shipped
      .replace(/^resolvers docker\n(?: {4}.*\n)+/m, "")
      .replace(" resolvers docker init-addr none", "")
      .replace("bind :8000", `bind 127.0.0.1:${port}`)
      .replace("server-template api 8 api:8000", `server api 127.0.0.1:${new URL(server.url).port}`);
    const file = join(mkdtempSync(join(tmpdir(), "haproxy-")), "haproxy.cfg");
    writeFileSync(file, here);
    const checked = spawnSync("haproxy", ["-c", "-f", file], { encoding: "utf8" });
    expect(checked.status, checked.stderr).toBe(0);
    haproxy = spawn("haproxy", ["-db", "-f", file], { stdio: "ignore" });
    await vi.waitFor(async () => expect(await ask(port, "GET /health")).toContain("HTTP/1.1 200"), { timeout: 60_000 });
  });
  afterAll(() => haproxy?.kill());

  const isShown = (reply: string) => reply.startsWith("HTTP/1.1 200");

  const SPELLINGS = ["metrics", "%6Detrics", "metric%73", "%6d%65%74%72%69%63%73", "load", "l%6Fad", "%6c%6f%61%64"];
  const PREFIXES = [
    "/",
    "//",
    "/./",
    "/.//",
    "/%2e/",
    "/../",
    "/x/../",
    "/x//../",
    "/%2F",
    "/%2f/",
    "/v1/../",
    "/v1/x/../../",
  ];
  const SUFFIXES = [
    "",
    "/",
    "//",
    "?",
    "?x=1",
    "#",
    "#x",
    "/?x",
    ";x",
    "/.",
    "/x/..",
    "%00",
    "%20",
    "%3F",
    "%23",
    "/%2e",
    ".",
  ];
  const TARGETS = [
    ...SPELLINGS.flatMap((name) => PREFIXES.map((prefix) => prefix + name)),
    ...SPELLINGS.flatMap((name) => SUFFIXES.map((suffix) => `/${name}${suffix}`)),
    ...[
      "/METRICS",
      "/Metrics",
      "/LOAD",
      "/%4Detrics",
      "/%256Detrics",
      "metrics",
      "/\tmetrics",
      "\\metrics",
      "/\\metrics",
    ],
    ...[
      "http://localhost/metrics",
      "http://localhost//load",
      "http://x?/metrics",
      "http://x#/metrics",
      "https://x/%6detrics",
    ],
    ...[
      "http:///metrics",
      "http://x/y?/metrics",
      "http://x@y/load",
      "x://y/metrics",
      "*",
      "/x?http://y/metrics",
      "?/metrics",
    ],
  ];

  it.each(["GET", "HEAD", "POST"])("%s shows them at no spelling of their paths", async (method) => {
    const at = async (target: string) => isShown(await ask(port, `${method} ${target}`));
    const shown: string[] = [];
    for (const target of TARGETS) if (await at(target)) shown.push(target);
    expect(shown).toEqual([]);
  });

  it("tries spellings that the server itself understands", async () => {
    const direct = Number(new URL(server.url).port);
    for (const target of ["/metrics", "/%6Detrics", "/l%6Fad/", "/metrics#x", "http://localhost/metrics"]) {
      expect(isShown(await ask(direct, `GET ${target}`)), target).toBe(true);
    }
  });

  it("passes everything else on as it came", async () => {
    for (const target of [
      "/v1/models",
      "/v1/models/?x=metrics",
      "/v1/models/fake",
      "http://localhost/v1/models",
      "/health?a=/metrics",
    ]) {
      expect(await ask(port, `GET ${target}`), target).toContain("HTTP/1.1 200");
    }
    const { version } = JSON.parse(
      (await ask(port, "GET /version")).split("\r\n\r\n")[1]!.replace(/^[\da-f]+\r\n/, ""),
    );
    expect(version).toMatch(/^\d/);
    expect(await ask(port, "GET /v1/models/metrics")).toContain("The model `metrics` does not exist");
    expect(await ask(port, "GET /v1/models/a%2Fmetrics%3F")).toContain("a/metrics?");
  });
});
