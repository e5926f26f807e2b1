// Every page in every state that looks different: what the accessibility test checks and `npm run web:screenshots` shows.
import type { Page } from "playwright-core";

/** A server with a policy "agent" that has learnt from the groups of stories.ts. */
export interface Places {
  url: string;
  /** Ids. */
  policy: string;
  job: string;
}

export interface State {
  name: string;
  /** POLICY and JOB stand for ids. */
  path: string;
  isSignedOut?: boolean;
  /** Console errors that belong to it. */
  announced?: RegExp;
  /** Brings it about, and waits until all of it is there. */
  reach(page: Page): Promise<void>;
}

export function addressOf({ path }: State, { url, policy, job }: Places): string {
  return url + path.replace("POLICY", policy).replace("JOB", job);
}

const button = (page: Page, name: string | RegExp) => page.getByRole("button", { name, exact: true });
const answers = (page: Page) => page.getByRole("article");

async function send(page: Page, text: string): Promise<void> {
  await page.getByLabel("Message", { exact: true }).fill(text);
  await button(page, "Send").click();
}

async function ask(page: Page, text: string, count = 1): Promise<void> {
  await send(page, text);
  await answers(page)
    .nth(count - 1)
    .waitFor();
  await button(page, "Send").waitFor();
}

/** Questions and answers in turn. */
async function importChat(page: Page, ...said: string[]): Promise<void> {
  const messages = said.map((content, i) => ({ role: i % 2 === 0 ? "user" : "assistant", content }));
  const buffer = Buffer.from(JSON.stringify(messages));
  const file = { name: "chat.json", mimeType: "application/json", buffer };
  await page.locator("input[type=file]").first().setInputFiles(file);
  await answers(page).first().waitFor();
}

export const ANSWER = `# Waves

Waves are **moving energy**: the water itself goes in circles. See [the sea](https://example.org/sea) for more[^1].

1. Wind blows over the water.
2. Ripples grow:
   - in height,
   - in length.

\`\`\`python
def speed(depth: float, g: float = 9.81) -> float:
    """Of a long wave, in metres per second."""
    return (g * depth) ** 0.5  # Lagrange
\`\`\`

In deep water $c = \\sqrt{\\frac{g\\lambda}{2\\pi}}$, and

$$
\\frac{\\partial^2 u}{\\partial t^2} = c^2 \\nabla^2 u
$$

| sea | mean depth | volume |
|---|---:|---:|
| North Sea | 95 m | 54,000 km³ |
| Baltic Sea | 55 m | 21,700 km³ |

> It is always the last wave that wets you.

[INFO]: measured in 2024

[^1]: In metres, at low tide.`;

const playground = "/?max_tokens=24&temperature=1&seed=1";

export const STATES: readonly State[] = [
  {
    ...{ name: "sign-in", path: "/", isSignedOut: true },
    reach: (page) => page.locator("input").first().waitFor(),
  },
  {
    ...{ name: "sign-in-refused", path: "/", isSignedOut: true, announced: /401/ },
    reach: async (page) => {
      await page.locator("input").first().fill("fw_wrong");
      await page.keyboard.press("Enter");
      await page.getByRole("alert").filter({ hasText: /\w/ }).waitFor();
    },
  },
  {
    ...{ name: "playground", path: "/" },
    reach: (page) => button(page, "Send").waitFor(),
  },
  {
    ...{ name: "playground-answer", path: "/" },
    reach: async (page) => {
      await importChat(page, "Hello", "Hello. What would you like to know?", "Tell me about waves.", ANSWER);
      await page.locator("math").first().waitFor({ state: "attached" });
      await page.locator(".code-word").first().waitFor();
    },
  },
  {
    ...{ name: "playground-answering", path: "/?max_tokens=300&min_tokens=300" },
    reach: async (page) => {
      await send(page, "Tell me about the sea.");
      await answers(page).first().getByText(/\w/).first().waitFor();
    },
  },
  {
    ...{ name: "playground-error", path: "/?max_tokens=100000", announced: /400/ },
    reach: async (page) => {
      await send(page, "Hello");
      await page.getByRole("alert").filter({ hasText: /\w/ }).first().waitFor();
    },
  },
  {
    ...{ name: "playground-tokens", path: `${playground}&view=tokens` },
    reach: async (page) => {
      await ask(page, "Tell me about the sea.");
      await page.getByRole("option").nth(2).hover();
      await page.locator(".token-panel").waitFor();
    },
  },
  {
    ...{ name: "playground-compare", path: `${playground}&m=agent@0&m=agent@1&n=2` },
    reach: async (page) => {
      await ask(page, "Tell me about the sea.", 4);
    },
  },
  {
    ...{ name: "playground-settings", path: "/" },
    reach: async (page) => {
      await button(page, "Settings").click();
      await page.getByLabel("temperature", { exact: true }).waitFor();
      await page.evaluate("document.querySelectorAll('.drawer details').forEach((one) => { one.open = true; })");
    },
  },
  {
    ...{ name: "playground-models", path: "/" },
    reach: async (page) => {
      await page.getByRole("button", { name: /^Model 1/ }).click();
      await page.locator(".model-menu li").first().waitFor();
    },
  },
  {
    ...{ name: "playground-chats", path: "/" },
    reach: async (page) => {
      await importChat(page, "A long title that does not fit into the list of the chats of this page.", "So it is.");
      await importChat(page, "The blue sea", "It is blue because water absorbs red light.");
      if (!(await page.getByLabel("Search chats").isVisible())) await button(page, "Chats").click();
      await page.getByLabel("Search chats").waitFor();
    },
  },
  {
    ...{ name: "playground-edit", path: "/" },
    reach: async (page) => {
      await importChat(page, "Tell me about the sea.", "It is deep.", "And blue?", "Often.");
      await page.getByRole("button", { name: /^Edit/ }).first().click();
    },
  },
  {
    ...{ name: "playground-teach", path: `${playground}&m=agent&n=4&panel=teach` },
    reach: async (page) => {
      await ask(page, "Tell me about the sea.", 4);
      await page.locator(".rated li").first().waitFor();
    },
  },
  {
    ...{ name: "playground-raw", path: `${playground}&view=raw` },
    reach: async (page) => {
      await send(page, "Tell me about the sea.");
      await page.locator(".raw-view pre").first().waitFor();
    },
  },
  {
    ...{ name: "playground-prompt", path: `${playground}&view=prompt` },
    reach: async (page) => {
      await send(page, "Tell me about the sea.");
      await page.locator(".prompt-tokens li").first().waitFor();
    },
  },
  {
    ...{ name: "help", path: "/" },
    reach: async (page) => {
      await button(page, "Send").waitFor();
      await page.locator("body").click({ position: { x: 5, y: 300 } });
      await page.keyboard.press("?");
      await page.getByRole("dialog").waitFor();
    },
  },
  {
    ...{ name: "policies", path: "/policies" },
    reach: (page) => page.getByRole("link", { name: "Chat with agent" }).waitFor(),
  },
  {
    ...{ name: "policy", path: "/policies/POLICY" },
    reach: async (page) => {
      await page.locator("canvas").first().waitFor();
      await page.getByRole("link", { name: "Chat with step 1" }).waitFor();
    },
  },
  {
    ...{ name: "policy-missing", path: "/policies/nothing", announced: /404/ },
    reach: (page) => page.locator(".problem").first().waitFor(),
  },
  {
    ...{ name: "job", path: "/jobs/JOB" },
    reach: (page) => page.getByText("nothing to learn", { exact: true }).waitFor(),
  },
  {
    ...{ name: "rollout", path: "/jobs/JOB/2/2?colour=ratio" },
    reach: async (page) => {
      await page.getByRole("listbox").first().focus();
      await page.locator(".token-panel").waitFor();
    },
  },
  {
    ...{ name: "lab", path: "/jobs/JOB/lab" },
    reach: async (page) => {
      await page.getByText(/numbers of group 0/).waitFor();
      await page.getByRole("table").first().waitFor();
    },
  },
  {
    ...{ name: "serving", path: "/serving" },
    reach: (page) => page.locator(".chart canvas").nth(3).waitFor(),
  },
  {
    ...{ name: "serving-log", path: "/serving" },
    reach: async (page) => {
      await page.getByText("Log of the server").click();
      await page.getByLabel("Lines of the log").waitFor();
    },
  },
  {
    ...{ name: "access", path: "/access" },
    reach: (page) => page.getByRole("table").waitFor(),
  },
  {
    ...{ name: "access-made", path: "/access" },
    reach: async (page) => {
      await page.getByRole("table").waitFor();
      await page.getByLabel("name", { exact: true }).fill("my laptop");
      await button(page, "Create").click();
      await page.locator(".secret pre").waitFor();
      await page
        .getByRole("button", { name: /^Revoke/ })
        .last()
        .click();
    },
  },
  {
    ...{ name: "not-found", path: "/serving" },
    reach: async (page) => {
      await page.getByRole("navigation", { name: "Pages" }).waitFor();
      await page.evaluate("history.pushState(null, '', '/nothing'); dispatchEvent(new PopStateEvent('popstate'))");
      await page.getByRole("heading", { name: "Nothing here" }).waitFor();
    },
  },
  {
    ...{ name: "docs", path: "/docs" },
    reach: (page) => page.getByRole("heading", { level: 1 }).waitFor(),
  },
];
