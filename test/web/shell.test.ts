// The frame of the page in a browser: signing in, the keyboard, a server that goes away and comes back.
import type { Dialog } from "playwright-core";
import { expect, it } from "vitest";
import { shared } from "../support/shared-server.ts";
import { API_KEY, startTestServer, type TestServer } from "../support/test-server.ts";
import { inBrowser } from "./browser.ts";

inBrowser("the frame of the page", (bench) => {
  const server = shared<TestServer>(startTestServer);

  it("signs in with a pasted token, for this tab", async () => {
    const page = await bench.open(server.url);
    expect(await page.title()).toBe("Flywheel");
    await page.getByLabel("Token", { exact: true }).fill(`  ${API_KEY} `);
    await page.getByRole("button", { name: "Enter" }).click();
    await page.getByRole("navigation", { name: "Pages" }).waitFor();
    await page.getByText("fake", { exact: true }).first().waitFor();
    expect(
      await page.evaluate("[sessionStorage.getItem('flywheel.key'), localStorage.getItem('flywheel.key')]"),
    ).toEqual([API_KEY, null]);
    await page.reload();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("button", { name: "Enter" }).waitFor();
    expect(await page.evaluate("sessionStorage.getItem('flywheel.key')")).toBe(null);
  });

  it("has everything in sight on a phone, and what is not for a page under Account", async () => {
    const page = await bench.open(server.url, { key: API_KEY, width: 390, height: 844 });
    const rail = page.getByRole("navigation", { name: "Pages" });
    await rail.getByRole("link", { name: "Access" }).waitFor();
    const size = () => rail.evaluate((node) => [node.scrollWidth, node.scrollHeight]);
    const room = () => rail.evaluate((node) => [node.clientWidth, node.clientHeight]);
    expect(await size()).toEqual(await room());
    const signOut = page.getByRole("button", { name: "Sign out" });
    expect(await signOut.isVisible()).toBe(false);
    const account = page.getByRole("button", { name: "Account" });
    await account.click();
    const { x, y, width, height } = (await signOut.boundingBox())!;
    expect([x >= 0, y >= 0, x + width <= 390, y + height <= 844]).toEqual([true, true, true, true]);
    await page.keyboard.press("Escape");
    await signOut.waitFor({ state: "hidden" });
    await account.press("Enter");
    await page.getByRole("button", { name: "Shortcuts" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    expect(await signOut.isVisible()).toBe(false);
    await account.click();
    await signOut.click();
    await page.getByRole("button", { name: "Enter" }).waitFor();
  });

  it("signs in by a one-time link, which leaves no trace in the address and works once", async () => {
    bench.announce(/401/);
    const { code } = await (await server.post("/v1/session-codes", {})).json();
    const page = await bench.open(server.url);
    page.once("dialog", (dialog) => dialog.accept());
    await page.goto(`${server.url}/?n=2#code=${code}`);
    await page.getByRole("navigation", { name: "Pages" }).waitFor();
    expect(page.url()).toBe(`${server.url}/?n=2`);
    expect(await page.evaluate("history.length")).toBeLessThanOrEqual(3);
    const key = (await page.evaluate("sessionStorage.getItem('flywheel.key')")) as string;
    expect(key).not.toBe(API_KEY);
    const stolen = await bench.open(`${server.url}/#code=${code}`);
    await stolen.getByRole("alert").filter({ hasText: /code/ }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("button", { name: "Enter" }).waitFor();
    const refused = () => fetch(`${server.url}/v1/me`, { headers: { authorization: `Bearer ${key}` } });
    await expect.poll(async () => (await refused()).status).toBe(401);
  });

  it("asks before a link signs its visitor in to another workspace", async () => {
    bench.announce(/401/);
    const wish = { name: "stranger", scopes: ["inference"], workspace: "elsewhere" };
    const { token } = await (await server.post("/v1/tokens", wish)).json();
    const headers = { authorization: `Bearer ${token}` };
    const link = async () => {
      const { code } = await (await server.post("/v1/session-codes", {}, headers)).json();
      return `#code=${code}`;
    };
    const page = await bench.open(server.url, { key: API_KEY });
    await page.getByRole("navigation", { name: "Pages" }).waitFor();
    let visits = 0;
    /** The question that was asked, and the key afterwards. */
    const visit = async (fragment: string, answer: "accept" | "dismiss") => {
      const questions: string[] = [];
      const reply = async (dialog: Dialog) => {
        questions.push(dialog.message());
        await dialog[answer]();
      };
      page.on("dialog", reply);
      await page.goto(`${server.url}/?n=${++visits}${fragment}`);
      await page.getByRole("navigation", { name: "Pages" }).waitFor();
      page.off("dialog", reply);
      return { questions, key: await page.evaluate("sessionStorage.getItem('flywheel.key')") };
    };
    const question = "Sign in as stranger, in the workspace elsewhere?";
    const ended = page.waitForResponse((response) => response.url().endsWith("/sessions/current"));
    expect(await visit(await link(), "dismiss")).toEqual({ questions: [question], key: API_KEY });
    expect((await ended).status()).toBe(204);
    expect(await visit("#code=wrong", "accept")).toEqual({ questions: [], key: API_KEY });
    const accepted = await visit(await link(), "accept");
    expect(accepted.questions).toEqual([question]);
    expect(accepted.key).not.toBe(API_KEY);
  });

  it("keeps a token on this device when told to", async () => {
    const page = await bench.open(server.url);
    await page.getByLabel("Token", { exact: true }).fill(API_KEY);
    await page.getByLabel("on this device").check();
    await page.getByRole("button", { name: "Enter" }).click();
    await page.getByRole("navigation", { name: "Pages" }).waitFor();
    expect(await page.evaluate("localStorage.getItem('flywheel.key')")).toBe(API_KEY);
  });

  it("signs out all tabs that have the token of this device", async () => {
    const page = await bench.open(server.url);
    await page.getByLabel("Token", { exact: true }).fill(API_KEY);
    await page.getByLabel("on this device").check();
    await page.getByRole("button", { name: "Enter" }).click();
    await page.getByRole("navigation", { name: "Pages" }).waitFor();
    const other = await page.context().newPage();
    await other.goto(server.url);
    await other.getByRole("navigation", { name: "Pages" }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await other.getByRole("alert").filter({ hasText: "You signed out in another tab." }).waitFor();
  });

  it("says what is wrong with a token, and keeps the address", async () => {
    bench.announce(/401/);
    const page = await bench.open(`${server.url}/?m=fake`);
    await page.getByLabel("Token", { exact: true }).fill("fw_wrong");
    await page.getByRole("button", { name: "Enter" }).click();
    await page.getByRole("alert").filter({ hasText: "The token is not known here." }).waitFor();
    expect(page.url()).toBe(`${server.url}/?m=fake`);
  });

  it("goes back to the form when a token has expired", async () => {
    bench.announce(/401/);
    const wish = { name: "brief", scopes: ["inference"], lifetime_s: 1 };
    const { token } = await (await server.post("/v1/tokens", wish)).json();
    const me = () => fetch(`${server.url}/v1/me`, { headers: { authorization: `Bearer ${token}` } });
    await expect.poll(async () => (await me()).status).toBe(401);
    const page = await bench.open(server.url, { key: token });
    await page.getByRole("alert").filter({ hasText: "expired" }).waitFor();
    await page.getByRole("button", { name: "Enter" }).waitFor();
  });

  it("says on a server that does not train why it has no policies and jobs, and asks for none", async () => {
    const wish = { name: "talker", scopes: ["inference"] };
    const { token } = await (await server.post("/v1/tokens", wish)).json();
    const page = await bench.open(server.url, { key: token });
    for (const path of ["/policies", "/policies/x", "/jobs/x", "/jobs/x/0/0"]) {
      await page.goto(`${server.url}${path}`); // a refused request would be an error of the console
      await page.getByText("This server does not train").waitFor();
    }
    await page.getByRole("link", { name: "To the playground" }).click();
    await page.getByLabel("Message", { exact: true }).waitFor();
  });

  it("lists its shortcuts and changes the theme by keyboard", async () => {
    const page = await bench.open(server.url, { key: API_KEY });
    await page.getByRole("navigation").waitFor();
    await page.keyboard.press("Escape"); // leaves the box for the message
    await page.keyboard.press("?");
    await page.getByRole("dialog").getByText("go to Play").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await page.keyboard.press("t");
    await page.keyboard.press("t");
    expect(await page.evaluate("document.documentElement.dataset.theme")).toBe("dark");
  });

  it("shows a banner while the server is gone, and goes on by itself", async () => {
    bench.announce(/ERR_/);
    const own = await startTestServer();
    const page = await bench.open(own.url, { key: API_KEY });
    await page.getByRole("navigation").waitFor();
    await own.close();
    await page.getByText("The server does not answer.").waitFor();
    const again = await startTestServer({ config: { port: Number(new URL(own.url).port) } });
    await page.getByText("The server does not answer.").waitFor({ state: "detached" });
    await again.close();
  });
});
