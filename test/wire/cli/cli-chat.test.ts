// Talking to a server from the command line, and its access tokens.
import { execFile, spawn } from "node:child_process";
import { chmodSync, existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { json, text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { BIN, clean, fresh, MODEL, run, serve } from "../../support/cli-process.ts";
import { looseFetch } from "../../support/test-server.ts";

/** The tokens of a list as JSON. Those of the same second come in any order. */
function byName(json: string): { name: string; state: string }[] {
  const rows = JSON.parse(json) as { name: string; state: string }[];
  return rows.sort((a, b) => a.name.localeCompare(b.name));
}

describe("flywheel tokens and chat", () => {
  it("work against a running server", async () => {
    const data = fresh();
    const server = await serve([MODEL, "--port", "0", "--data", data, "--api-key", "k"]);
    const made = await run([
      "tokens",
      "create",
      "--name",
      "ci",
      "--scope",
      "inference",
      "--lifetime",
      "1h",
      "--data",
      data,
    ]);
    const token = made.out.trim();
    expect(token).toMatch(/^fw_/);
    const question = {
      messages: [{ role: "user", content: "hello there" }],
      max_completion_tokens: 12,
      temperature: 0,
    };
    const reply = await looseFetch(`${server.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(question),
    });
    const { choices } = (await reply.json()) as { choices: { message: { content: string } }[] };
    const said = await run(
      ["chat", "--url", server.url, "--max-tokens", "12", "--temperature", "0", "hello", "there"],
      { FLYWHEEL_API_KEY: token },
    );
    expect(choices[0]!.message.content).not.toBe("");
    expect(said.code).toBe(0);
    expect(said.out).toEqual(`${choices[0]!.message.content}\n`);
    expect(said.err).toBe("");
    const list = await run(["tokens", "list", "--data", data, "--json"]);
    expect(byName(list.out)).toMatchObject([
      { name: "ci", scopes: ["inference"], state: expect.stringMatching(/^valid until/) },
      { name: "local key", scopes: ["inference", "training", "admin"], workspace: "api-key-1" },
    ]);
    expect(list.out).not.toContain(token.slice(12));
    expect((await run(["tokens", "revoke", "ci", "--data", data])).out).toMatch(/^revoked [0-9a-f]{8} \(ci\)/);
    const refused = await run(["chat", "--url", `${server.url}/v1`, "hi"], { FLYWHEEL_API_KEY: token });
    expect(refused.code).toBe(1);
    expect(refused.err).toMatch(/401: The token was revoked/);
    expect((await run(["tokens", "revoke", "ci", "--data", data])).code).toBe(1);
    expect((await run(["tokens", "create", "--scope", "root", "--data", data])).err).toMatch(/unknown scope root/);
    for (const lifetime of ["soon", "00d", "1001y"]) {
      const refused = await run(["tokens", "create", "--lifetime", lifetime, "--data", data]);
      expect(refused.err, lifetime).toMatch(/lifetime looks like/);
    }
    const chat = ["chat", "--url", server.url, "--api-key", "k", "--max-tokens", "400", "hello"];
    const headed = spawn(process.execPath, [BIN, ...chat], { env: clean() });
    let complaint = "";
    headed.stderr.on("data", (bytes) => {
      complaint += bytes;
    });
    headed.stdout.once("data", () => headed.stdout.destroy());
    const code = await new Promise((resolve) => headed.on("exit", resolve));
    expect(code).toBe(0);
    expect(complaint).toBe("");
    expect((await run(["chat", "hi"])).err).toMatch(/a token is needed/);
    expect((await run(["chat", "--url", "http://127.0.0.1:1", "hi"], { FLYWHEEL_API_KEY: "x" })).err).toMatch(
      /cannot reach/,
    );
  });

  it("need no token for the server of one's own data folder, and HTTP still does", async () => {
    const data = fresh();
    const server = await serve([MODEL, "--port", "0", "--data", data]);
    const env = { FLYWHEEL_DATA: data, OPENAI_API_KEY: "sk-openai" };
    const said = await run(["chat", "--max-tokens", "4", "hello"], env);
    expect(said).toMatchObject({ code: 0, err: "" });
    expect((await run(["policies"], env)).out).toMatch(/^name +step/);
    expect((await run(["status", "--json"], env)).out).toContain(server.url);
    expect((await run(["policies", "--data", data, "--url", server.url.replace("127.0.0.1", "localhost")])).code).toBe(
      0,
    );
    expect((await run(["policies", "--data", data, "--url", "http://127.0.0.1:1"])).err).toMatch(
      /a token is needed for/,
    );
    for (const path of ["/v1/models", "/v1/preview/models"]) {
      expect((await looseFetch(`${server.url}${path}`)).status).toBe(401);
    }
    const listed = byName((await run(["tokens", "list", "--json"], env)).out);
    expect(listed).toMatchObject([
      { name: "first" },
      { name: "local key", state: expect.stringMatching(/^valid until/) },
    ]);

    const file = join(data, "local-key.json");
    const { token } = JSON.parse(readFileSync(file, "utf8")) as { token: string };
    expect(server.out() + server.err()).not.toContain(token);
    if (process.platform !== "win32") {
      chmodSync(file, 0o644);
      expect((await run(["policies"], env)).err).toMatch(/^flywheel: other users can read or change .*local-key\.json/);
      chmodSync(file, 0o600);
    }
    // killed, it leaves the key; the next start makes it worthless, and a clean stop leaves none
    server.process.kill("SIGKILL");
    await server.exit;
    expect((await run(["policies"], env)).err).toMatch(/cannot reach .* `flywheel serve`/);
    const again = await serve([MODEL, "--port", "0", "--data", data]);
    const headers = { authorization: `Bearer ${token}` };
    expect((await looseFetch(`${again.url}/v1/models`, { headers })).status).toBe(401);
    expect((await run(["policies"], env)).code).toBe(0);
    again.process.kill("SIGTERM");
    expect(await again.exit).toBe(0);
    expect(existsSync(file)).toBe(false);
    expect((await run(["tokens", "list"], env)).out).not.toContain("local key");
  });

  it("a conversation goes on after an error of the server, without the question that was refused", async () => {
    const asked: string[][] = [];
    const refusals = [null, "too long:\n  by 3 tokens", null, null];
    const server = createServer(async (request, response) => {
      const { messages } = (await json(request)) as { messages: { content: string }[] };
      asked.push(messages.map(({ content }) => content));
      const message = refusals[asked.length - 1];
      if (message) {
        response.writeHead(400).end(JSON.stringify({ error: { message } }));
        return;
      }
      response.write(`data: {"choices":[{"delta":{"content":"answer ${asked.length}"}}]}\n\n`);
      response.end(asked.length === 3 ? 'data: {"error":{"message":"it broke"}}\n\n' : "data: [DONE]\n\n");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const chat = execFile(process.execPath, [BIN, "chat", "--url", `http://127.0.0.1:${port}`, "--api-key", "k"], {
      env: clean(),
    });
    const [out, err] = [text(chat.stdout!), text(chat.stderr!)];
    chat.stdin!.end("one\ntwo\nthree\nfour\n");
    const code = await new Promise((resolve) => chat.on("exit", resolve));
    server.close();
    expect(asked).toEqual([
      ["one"],
      ["one", "answer 1", "two"],
      ["one", "answer 1", "three"],
      ["one", "answer 1", "four"],
    ]);
    expect(await err).toBe("flywheel: the server answered 400: too long: by 3 tokens\nflywheel: it broke\n");
    expect(await out).toBe("> answer 1\n> > answer 3\n> answer 4\n> \n");
    expect(code).toBe(1);
  });

  it("puts tokens into workspaces and joins them", async () => {
    const data = fresh();
    const tokens = (...args: string[]) => run(["tokens", ...args, "--data", data]);
    for (const args of [
      ["--name", "ci"],
      ["--name", "ci"],
      ["--name", "app", "--workspace", "team"],
    ]) {
      expect((await tokens("create", ...args)).code).toBe(0);
    }
    const rows = async () =>
      JSON.parse((await tokens("list", "--json")).out) as { id: string; name: string; workspace: string }[];
    const [one, two] = (await rows()).filter(({ name }) => name === "ci");
    expect([one!.workspace, two!.workspace].sort()).toEqual(["ci", expect.stringMatching(/^ci-[0-9a-f]{8}$/)]);
    const joined = await tokens("join", "ci", "--workspace", "team");
    expect(joined.out.trim().split("\n").sort()).toEqual(
      [one!, two!].map(({ id }) => `${id} (ci) is in the workspace team`).sort(),
    );
    expect((await rows()).map(({ workspace }) => workspace)).toEqual(["team", "team", "team"]);
    expect((await tokens("join", "nobody", "--workspace", "team")).err).toMatch(/no token has the id or name nobody/);
    expect((await tokens("join", "ci", "--workspace", " ")).err).toMatch(/a workspace's name has 1 to 128 characters/);
    expect((await tokens("create", "--workspace", "")).err).toMatch(/a workspace's name has 1 to 128 characters/);
  });

  it("opens the page with a link that signs in once, by a token or by the data folder", async () => {
    const data = fresh();
    const server = await serve([MODEL, "--port", "0", "--data", data]);
    const redeem = async (link: string) => {
      const response = await looseFetch(`${server.url}/v1/sessions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ code: new URL(link).hash.replace("#code=", "") }),
      });
      return { status: response.status, body: await response.json() };
    };
    // the server says where it is
    const byData = await run(["open", "jobs/7?tab=tokens", "--data", data]);
    expect(byData).toMatchObject({ code: 0, err: "" });
    expect(byData.out).toMatch(new RegExp(`^${server.url}/jobs/7\\?tab=tokens#code=[\\w-]{43}\n$`));
    const first = await redeem(byData.out.trim());
    expect(first.body.principal).toMatchObject({ name: "first", workspace: { name: "default" } });
    expect((await redeem(byData.out.trim())).status).toBe(401);

    const token = (await run(["tokens", "create", "--name", "app", "--data", data])).out.trim();
    const byKey = await run(["open", "--url", server.url], { FLYWHEEL_API_KEY: token });
    expect((await redeem(byKey.out.trim())).body.principal).toMatchObject({ name: "app", scopes: ["inference"] });
    const refused = await run(["open", "--url", server.url, "--api-key", "wrong"]);
    expect(refused).toMatchObject({ code: 1, err: expect.stringMatching(/401: The token is not known here/) });
    server.process.kill("SIGTERM");
    await server.exit;
    expect((await run(["open", "--data", fresh()])).err).toMatch(/is not the data directory of a server/);
  });

  it("lists and revokes tokens only in a server's data folder, and creates nothing at a wrong path", async () => {
    const nowhere = join(fresh(), "typo");
    for (const command of [["list"], ["revoke", "ci"]]) {
      const { code, err } = await run(["tokens", ...command, "--data", nowhere]);
      expect(code).toBe(1);
      expect(err).toEqual(
        `flywheel: ${nowhere} is not the data directory of a server: it has no flywheel.db. Start a server with \`flywheel serve\`, or give its --data\n`,
      );
    }
    expect(existsSync(nowhere)).toBe(false);
  });

  it.each([
    [["chat", "--url", "127.0.0.1:8000", "hi"], "x", /--url must look like http:.* not 127\.0\.0\.1:8000$/m],
    [["models", "--url", "localhost"], "x", /--url must look like http:/],
    [["models"], "a\nb", /the token has characters that cannot be sent/],
    [["chat", "hi"], "ключ", /the token has characters that cannot be sent/],
    [["chat", "--temperature", "", "hi"], "x", /--temperature expects a number, not nothing/],
    [["train", BIN, "--model", "m", "--learning-rate", ""], "x", /--learning-rate expects a number, not nothing/],
  ])("a mistake in %j is not reported as a missing server", async (args, key, message) => {
    const { code, err } = await run(args, { FLYWHEEL_API_KEY: key });
    expect(code).toBe(1);
    expect(err).toMatch(message);
  });
});
