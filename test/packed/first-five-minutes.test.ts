// The first five minutes of a new user, as a script: pack, install, run, talk, train, open, stop. With only Node, an empty
// home and no settings.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";
import { needing, POSIX } from "../support/needs.ts";
import { emptyEnvironment, npm, type Output, packed, run, startAndWait } from "./packed.ts";

it("pack, install, run, talk, train, open, stop", async () => {
  const { command } = await packed();
  const env = emptyEnvironment();
  const home = env.HOME!;
  const cwd = mkdtempSync(join(tmpdir(), "flywheel-first-"));
  const flywheel = async (...args: string[]) => (await run(command, args, cwd, env)).out;

  // run: nobody serves yet, so it serves for one answer, and says nothing else
  const answer = await run(command, ["run", "bundled", "What is 12 + 30?", "--temperature", "0"], cwd, env);
  expect(answer).toEqual({ out: "42\n", err: "" });
  expect(await flywheel("doctor")).toMatch(/\b0 wrong$/m);
  expect(await flywheel("show", "bundled")).toMatch(/: fits$/m);

  // train, with a project of one's own: nobody serves, so it does that itself
  const agent = join(cwd, "my-agent");
  await flywheel("init", "my-agent");
  await npm(["install"], agent);
  expect((await npm(["test"], agent)).out).toMatch(/\bfail 0\b/);
  const train = (steps: number) => npm(["start"], agent, { HOME: home, USERPROFILE: home, STEPS: String(steps) });
  const trained = ({ out }: Output) => [...out.matchAll(/^mean reward (\d\.\d\d); trained step (\d+)$/gm)];
  const alone = await train(1);
  expect(trained(alone).map(([, , step]) => step)).toEqual(["1"]);
  expect(alone.err).toContain("no server runs on this machine");

  const server = await startAndWait(command, ["serve", "--port", "0"], { cwd, env }, /^curl /m);
  const url = /^listening on (\S+)$/m.exec(server.out())![1]!;
  try {
    // talk, without a token
    expect(await flywheel("chat", "--temperature", "0", "What is 12 + 30?")).toBe("42\n");
    expect(await flywheel("run", "bundled", "What is 12 + 30?", "--temperature", "0")).toBe("42\n");
    expect(await flywheel("status")).toContain(url);
    expect((await fetch(`${url}/v1/models`)).status).toBe(401);

    // train on, with the server
    const more = await train(4);
    expect(more.err).not.toContain("no server");
    expect(trained(more).map(([, , step]) => step)).toEqual(["2", "3", "4", "5"]);
    const [first, last] = [trained(alone)[0]!, trained(more).at(-1)!].map(([, mean]) => Number(mean));
    expect(last).toBeGreaterThan(first!);
    expect(await flywheel("policies")).toMatch(/^my-agent +5 +default +flywheel-mini/m);
    expect(
      (await flywheel("chat", "--model", "my-agent@5", "--max-tokens", "8", "Shall we go? Yes or no?")).trim(),
    ).not.toBe("");

    // open: the link leads to the page and signs in once
    const link = new URL((await flywheel("open", "--no-browser")).trim());
    expect(link.origin).toBe(url);
    expect(await (await fetch(link)).text()).toContain("<!doctype html>");
    const body = JSON.stringify({ code: link.hash.replace("#code=", "") });
    const headers = { "content-type": "application/json" };
    expect((await fetch(`${url}/v1/sessions`, { method: "POST", headers, body })).status).toBe(200);
  } finally {
    server.process.kill("SIGTERM");
  }
  // stop: clean, without a key left behind
  expect(await server.exit).toBe(0);
  expect(existsSync(join(home, ".flywheel/local-key.json"))).toBe(false);
  await expect(flywheel("status")).rejects.toThrow(/no server of yours runs on .*Start one with `flywheel serve`/);
});

needing(POSIX).it("init finds the package through a link to its folder", async () => {
  const { command, folder } = await packed();
  const cwd = mkdtempSync(join(tmpdir(), "flywheel-linked-"));
  mkdirSync(join(cwd, "a/b/real"), { recursive: true });
  symlinkSync(join(cwd, "a/b/real"), join(cwd, "link"));
  await run(command, ["init", join(cwd, "link/my-agent")], cwd, emptyEnvironment());
  const made = join(cwd, "a/b/real/my-agent");
  const { dependencies } = JSON.parse(readFileSync(join(made, "package.json"), "utf8"));
  expect(resolve(realpathSync(made), dependencies.flywheel.replace("file:", ""))).toBe(realpathSync(folder));
});

it("init refuses a folder that is not empty, and a name that no policy can have", async () => {
  const { command } = await packed();
  const cwd = mkdtempSync(join(tmpdir(), "flywheel-init-"));
  mkdirSync(join(cwd, "full"));
  writeFileSync(join(cwd, "full/notes.txt"), "mine");
  const init = (name: string) => run(command, ["init", name], cwd, emptyEnvironment());
  await expect(init("full")).rejects.toThrow(/is not empty: choose a new folder/);
  expect(readFileSync(join(cwd, "full/notes.txt"), "utf8")).toBe("mine");
  await expect(init("My Agent")).rejects.toThrow(/cannot be a policy's name/);
  expect(existsSync(join(cwd, "My Agent"))).toBe(false);
});
