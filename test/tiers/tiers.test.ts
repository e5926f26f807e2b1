import { execFile, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { gunzipSync } from "node:zlib";
import { expect, it } from "vitest";

const LOCKED = JSON.parse(readFileSync(new URL("../../package-lock.json", import.meta.url), "utf8")).packages as Record<
  string,
  { version: string }
>;

interface Counts {
  passed: number;
  failed: number;
  failures: string[];
  skipped: Record<string, number>;
}

const TIERS = new URL("tiers.mjs", import.meta.url).href;
const { isHere, judged } = (await import(/* @vite-ignore */ TIERS)) as {
  isHere(need: string, env: NodeJS.ProcessEnv): boolean;
  judged(counts: Counts, env: NodeJS.ProcessEnv): Counts;
};

it("counts as failed what was skipped for want of something that is here", () => {
  const folder = mkdtempSync(join(tmpdir(), "programs-"));
  for (const program of ["haproxy", "chromium"]) writeFileSync(join(folder, program), "");
  const env = { PATH: `/nowhere:${folder}` };
  const skipped = { haproxy: 2, Chromium: 3, curl: 4, "haproxy, curl": 5, "FLYWHEEL_MINIMIND, the folder": 6 };
  expect(judged({ passed: 1, failed: 1, failures: ["x"], skipped }, env)).toEqual({
    passed: 1,
    failed: 1 + 2 + 3,
    failures: ["x", "2 skipped for want of haproxy, which is here", "3 skipped for want of Chromium, which is here"],
    skipped: { curl: 4, "haproxy, curl": 5, "FLYWHEEL_MINIMIND, the folder": 6 },
  });
  expect([isHere("gcc", env), isHere("ray in that Python", env)]).toEqual([false, false]);
  expect(isHere("Linux", env)).toBe(process.platform === "linux");
  rmSync(folder, { recursive: true });
});

it("runs steps of a list at the same time, counts them all, and builds once for all tiers of a series", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tiers-"));
  cpSync(new URL("run.mjs", import.meta.url), join(folder, "run.mjs"));
  const result = join(folder, "result");
  // either waits for the other
  writeFileSync(
    join(folder, "tiers.mjs"),
    `const step = (name, code) => ({ name, command: process.execPath, args: ["-e", code] });
    const meet = (mine, other) => "const fs = require('fs'); fs.writeFileSync('" + mine + "', ''); while (!fs.existsSync('" + other + "'));";
    const build = { ...step("build", "require('fs').appendFileSync('built', 'x')"), first: true };
    export const judged = (step) => step;
    export const TIERS = {
      one: () => [build],
      two: () => [build, [step("left", meet("l", "r")), step("right", meet("r", "l") + "process.exit(1)")]],
    };`,
  );
  const env = { ...process.env, FLYWHEEL_TIER_RESULT: result };
  const tell = (...args: string[]) =>
    spawnSync(process.execPath, ["run.mjs", ...args], { cwd: folder, env, encoding: "utf8" });
  expect(tell("one").status).toBe(0);
  expect(tell("two").stdout).toMatch(
    /right, beside left .* in that +0 +1 +0\n.*\nfailed in right: right ended with 1\n1 passed, 1 failed/s,
  );
  expect(readFileSync(join(folder, "built"), "utf8")).toBe("x");
  expect(tell("sum", result)).toMatchObject({
    status: 1,
    stdout: expect.stringContaining("2 passed, 1 failed, 0 skipped"),
  });
  rmSync(folder, { recursive: true });
});

/** A registry that knows these advisories, and what it was asked about. */
async function registry(advisories: object, status = 200) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      const body = Buffer.concat(parts);
      const text = request.headers["content-encoding"] === "gzip" ? gunzipSync(body).toString() : body.toString();
      const isQuestion = request.url!.includes("/advisories/bulk");
      if (isQuestion) asked.push(...Object.keys(JSON.parse(text)));
      const answer = isQuestion ? advisories : versionsOf(decodeURIComponent(request.url!.slice(1)));
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { asked, url: `http://127.0.0.1:${port}`, close: () => new Promise((resolve) => server.close(resolve)) };
}

/** What a registry has of a package: the version that is locked here. */
function versionsOf(name: string) {
  const { version } = LOCKED[`node_modules/${name}`]!;
  return { name, "dist-tags": { latest: version }, versions: { [version]: { name, version } } };
}

/** The step of the tier, and what npm says in it, with this registry. */
async function audited(url: string) {
  const env = { ...process.env, npm_config_registry: url, npm_config_fetch_retries: "0" };
  const script = `const { knownVulnerabilities } = await import(${JSON.stringify(TIERS)});
    console.log(JSON.stringify(knownVulnerabilities()));`;
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", script], { env });
  const step = JSON.parse(stdout) as { command: string; args: string[]; skip?: string };
  if (step.skip !== undefined) return step;
  const shell = process.platform === "win32";
  const ended = await run(step.command, step.args, { env, shell }).catch((error: { stdout: string }) => error);
  return { ...step, passed: !("code" in ended), said: ended.stdout };
}

it("asks the registry about every package that users install, and fails for one with a known vulnerability", async () => {
  const sound = await registry({});
  expect(await audited(sound.url)).toMatchObject({ passed: true });
  expect(sound.asked).toEqual(expect.arrayContaining(["fastify", "libsql", "pg", "pg-types", "prom-client", "yaml"]));
  await sound.close();

  const advisory = {
    id: 1,
    url: "https://x.example",
    title: "pg tells all",
    severity: "high",
    vulnerable_versions: "*",
  };
  const alarmed = await registry({ pg: [advisory] });
  expect(await audited(alarmed.url)).toMatchObject({ passed: false, said: expect.stringContaining("pg tells all") });
  await alarmed.close();

  const silent = await registry({}, 405);
  expect(await audited(silent.url)).toMatchObject({ skip: "a registry that answers npm audit" });
  await silent.close();
});
