// The page of tokens in a browser.
import { expect, it } from "vitest";
import { shared } from "../support/shared-server.ts";
import { API_KEY, startTestServer } from "../support/test-server.ts";
import { inBrowser, seriousFindings, sidewaysScroll } from "./browser.ts";

inBrowser("the access page", (bench) => {
  const server = shared(() => startTestServer());
  const status = async (key: string) =>
    (await fetch(`${server.url}/v1/me`, { headers: { authorization: `Bearer ${key}` } })).status;

  it("makes a token that is shown once, and revokes it after asking", async () => {
    const page = await bench.open(`${server.url}/access`, { key: API_KEY });
    await page.getByLabel("name").fill("ci");
    await page.getByLabel("inference").uncheck();
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("alert").filter({ hasText: "Choose at least one scope" }).waitFor();
    await page.getByLabel("inference").check();
    await page.getByLabel("training").check();
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByText("is shown once").waitFor();
    const secret = /fw_\S+/.exec((await page.locator(".secret pre").textContent())!)![0];
    expect(await status(secret)).toBe(200);
    const row = page.getByRole("row").filter({ hasText: "ci" });
    expect(await row.textContent()).toContain("inference training");
    expect(await seriousFindings(page)).toEqual([]);
    await page.reload();
    await row.waitFor();
    expect(await page.content()).not.toContain(secret);
    await row.getByRole("button", { name: "Revoke ci" }).click();
    await row.getByRole("button", { name: "No" }).click();
    expect(await status(secret)).toBe(200);
    await row.getByRole("button", { name: "Revoke ci" }).click();
    await row.getByRole("button", { name: "Yes, revoke" }).click();
    await row.getByText(/revoked/).waitFor();
    expect(await status(secret)).toBe(401);
  });

  it("says until when a token is valid, with the time where the reader is", async () => {
    const wish = { name: "brief", scopes: ["inference", "admin"], lifetime_s: 60 };
    const { token, expires_at } = await (await server.post("/v1/tokens", wish)).json();
    const page = await bench.open(`${server.url}/access`, { key: token });
    const format = `new Date("${expires_at}").toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })`;
    const time = (await page.evaluate(format)) as string;
    const row = page.getByRole("row").filter({ hasText: "brief" });
    await row.getByText(new RegExp(`^valid until .*, ${time} \\(`)).waitFor();
    await page.getByText(new RegExp(`signed in with a token, until .*, ${time}$`)).waitFor();
  });

  it("signs out whoever revokes the token in use", async () => {
    const scopes = ["inference", "admin"];
    const { token } = await (await server.post("/v1/tokens", { name: "mine", scopes })).json();
    const page = await bench.open(`${server.url}/access`, { key: token });
    await page.getByRole("button", { name: "Revoke mine" }).click();
    await page.getByRole("button", { name: "Yes, revoke" }).click();
    await page.getByRole("alert").filter({ hasText: "revoked" }).waitFor();
  });

  it("shows others who they are, at 360 pixels, without tokens", async () => {
    const { token } = await (await server.post("/v1/tokens", { name: "guest", scopes: ["inference"] })).json();
    const page = await bench.open(`${server.url}/access`, { key: token, width: 360, theme: "dark" });
    await page.getByText("Tokens are created by an admin").waitFor();
    expect(await page.getByRole("table").count()).toBe(0);
    expect(await seriousFindings(page)).toEqual([]);
    expect(await sidewaysScroll(page)).toBe(0);
  });
});
