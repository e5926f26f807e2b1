// How an answer reads in a browser: code, mathematics, tables, directions, the width of lines.
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { shared } from "../support/shared-server.ts";
import { API_KEY, startTestServer } from "../support/test-server.ts";
import { inBrowser, seriousFindings, sidewaysScroll } from "./browser.ts";

const ANSWER = `# Waves

${"The sea is wide and cold, and its waves come from far away to break on the sand. ".repeat(6)}

\`\`\`python
def f(x: int) -> str:
    return "${"a".repeat(300)}"  # long
\`\`\`

So $a^2$ and

$$
\\begin{aligned} a &= \\frac{b}{2} \\\\ &= c \\end{aligned}
$$

| name | depth |
|---|---:|
| North Sea | 725 m |

- שלום עולם
- one

[INFO]: started

[^1]: A note.`;

inBrowser("an answer that is read", (bench) => {
  const server = shared(() => startTestServer({ runner: { maxPositions: 20_000, numBlocks: 2_000 } }));
  const say = async (page: Page, text: string) => {
    await page.getByLabel("Message", { exact: true }).fill(`say:${text}`);
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("button", { name: /^Copy answer/ }).waitFor();
  };
  const seen = (page: Page, selector: string, read: string) =>
    page
      .locator(selector)
      .first()
      .evaluate(new Function("node", `return ${read}`) as (node: unknown) => unknown);

  it("has code with its language, colours and a copy button, mathematics, tables and notes", async () => {
    const page = await bench.open(`${server.url}/`, { key: API_KEY });
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const scripts = () => page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name).join(' ')");
    expect(await scripts()).not.toMatch(/highlight|mathml/);
    await say(page, ANSWER);
    const answer = page.getByRole("article").last();
    await answer.getByText("Python", { exact: true }).waitFor();
    await answer.locator(".code-word").first().waitFor();
    expect(await answer.locator(".code-comment").textContent()).toBe("# long");
    await answer.getByRole("button", { name: "Copy the code" }).click();
    await answer.getByText("copied").waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toMatch(
      /^def f\(x: int\) -> str:\n {4}return "a+" {2}# long$/,
    );
    await answer.locator("math mtable mfrac").waitFor({ state: "attached" });
    expect(await seen(page, ".display-math mfrac", "node.namespaceURI")).toBe("http://www.w3.org/1998/Math/MathML");
    expect(await answer.locator("p math").count()).toBe(1);
    await answer.getByRole("cell", { name: "725 m" }).waitFor();
    await answer.getByText("[INFO]: started").waitFor();
    await answer.getByText("A note.").waitFor();
    expect(await scripts()).toMatch(/highlight.* .*mathml|mathml.* .*highlight/);
    expect(await seriousFindings(page)).toEqual([]);
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await seriousFindings(page)).toEqual([]);
    await page.setViewportSize({ width: 390, height: 844 });
    await expect.poll(() => sidewaysScroll(page)).toBe(0);
    expect(await seriousFindings(page)).toEqual([]);
  });

  it("has lines of at most 75 characters, each in its own direction", async () => {
    const page = await bench.open(`${server.url}/`, { key: API_KEY, width: 1440, height: 900 });
    await say(page, ANSWER);
    const longest = await seen(page, ".card .markdown > p", LONGEST_LINE);
    expect(longest).toBeGreaterThan(60);
    expect(longest).toBeLessThanOrEqual(75);
    const direction = "getComputedStyle(node).direction";
    expect(await seen(page, ".markdown li:has-text('שלום')", direction)).toBe("rtl");
    expect(await seen(page, ".markdown li:has-text('one')", direction)).toBe("ltr");
    // what is wider than its place is reached by the keyboard
    expect(await seen(page, ".code pre", "node.tabIndex")).toBe(0);
  });

  it("is formatted while it grows", async () => {
    const page = await bench.open(`${server.url}/`, { key: API_KEY });
    await page.getByLabel("Message", { exact: true }).fill(`say:# Head\n\n${"word ".repeat(2_000)}`);
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("article").getByRole("heading", { name: "Head" }).waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page
      .getByRole("article")
      .getByText(/word word/)
      .waitFor();
  });
});

/** Characters of the longest line as it is drawn. Runs in the page. */
const LONGEST_LINE = `(() => {
  const text = node.firstChild;
  const range = document.createRange();
  const lines = new Map();
  for (let i = 0; i < text.length; i++) {
    range.setStart(text, i);
    range.setEnd(text, i + 1);
    const top = Math.round(range.getBoundingClientRect().top);
    lines.set(top, (lines.get(top) ?? 0) + 1);
  }
  return Math.max(...lines.values());
})()`;
