// Every page in every state that looks different: what the accessibility test checks and `npm run web:screenshots` shows.
import type { Page } from "playwright-core";
import type { Story } from "./stories.ts";

/** A server that lists the MCP server "sea", on which the story was told. */
export interface Places extends Story {
  url: string;
}

export interface State {
  name: string;
  /** POLICY, JOB, RIVAL_POLICY and RIVAL_JOB stand for ids. */
  path: string;
  isSignedOut?: boolean;
  /** Console errors that belong to it. */
  announced?: RegExp;
  /** Brings it about, and waits until all of it is there. */
  reach(page: Page): Promise<void>;
}

export function addressOf({ path }: State, { url, policy, job, rival, rivalJob }: Places): string {
  const ids = { RIVAL_POLICY: rival, RIVAL_JOB: rivalJob, POLICY: policy, JOB: job };
  return url + path.replaceAll(/(?:RIVAL_)?(?:POLICY|JOB)/g, (name) => ids[name as keyof typeof ids]);
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

/** Questions and answers in turn; messages as they are on the wire. */
async function importChat(page: Page, ...said: (string | object)[]): Promise<void> {
  const messages = said.map((one, i) =>
    typeof one === "string" ? { role: i % 2 === 0 ? "user" : "assistant", content: one } : one,
  );
  const buffer = Buffer.from(JSON.stringify(messages));
  const file = { name: "chat.json", mimeType: "application/json", buffer };
  await page.locator("input[type=file]").first().setInputFiles(file);
  await answers(page).first().waitFor();
}

/** They are made one after the other. */
export async function chartsAreDrawn(page: Page): Promise<void> {
  await page.locator('.charts:not([aria-busy="true"]) canvas').first().waitFor();
}

async function openTools(page: Page): Promise<void> {
  await button(page, "Settings").click();
  await page.getByText("Tools", { exact: true }).click();
}

function callOf(id: string, name: string, args: object) {
  const call = { id, type: "function", function: { name, arguments: JSON.stringify(args) } };
  return { role: "assistant", content: "", tool_calls: [call] };
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
    ...{ name: "playground-tools", path: "/" },
    reach: async (page) => {
      await openTools(page);
      await button(page, "calculate").click();
      await page.getByLabel("Offer calculate").waitFor();
      await page.getByText("always this").click();
    },
  },
  {
    ...{ name: "playground-mcp", path: "/" },
    reach: async (page) => {
      await openTools(page);
      await page.getByText("Tools of sea").click();
      await page.getByRole("checkbox", { name: /^repeat/ }).check();
      await page.getByLabel("Offer repeat").waitFor();
    },
  },
  {
    ...{ name: "playground-calls", path: "/" },
    reach: async (page) => {
      const sum = callOf("1", "calculate", { expression: "412 + 99" });
      const result = { role: "tool", tool_call_id: "1", content: "511" };
      const weather = callOf("2", "get_weather", { city: "Paris" });
      await importChat(page, "What is 412 + 99?", sum, result, "It is 511.", "How is the weather in Paris?", weather);
      await page.getByRole("button", { name: "Give the result" }).waitFor();
      await page.locator(".tool-call summary").first().click();
    },
  },
  {
    ...{ name: "playground-delete", path: "/" },
    reach: async (page) => {
      await importChat(page, "Tell me about the sea.", "It is deep.");
      await page.getByRole("button", { name: "Delete turn 1" }).click();
      await page.getByRole("alertdialog").waitFor();
    },
  },
  {
    ...{ name: "playground-rename", path: "/" },
    reach: async (page) => {
      await importChat(page, "Tell me about the sea.", "It is deep.");
      if (!(await page.getByLabel("Search chats").isVisible())) await button(page, "Chats").click();
      await button(page, "rename").click();
      await page.getByLabel("Title", { exact: true }).waitFor();
    },
  },
  {
    ...{ name: "playground-time", path: `${playground}&m=agent&panel=time` },
    reach: async (page) => {
      await ask(page, "Tell me about the sea.");
      await page.locator(".heat-grid tbody tr").nth(1).waitFor();
    },
  },
  {
    ...{ name: "playground-many", path: `${playground}&m=agent@0&m=agent@1&panel=many` },
    reach: async (page) => {
      await page.getByLabel("prompts, one per line").fill("What is 412 + 99?\nName a fish.");
      await button(page, "Compare").click();
      await page.getByText(/answered differently/).waitFor();
      await button(page, "Compare").waitFor();
    },
  },
  {
    ...{ name: "account", path: "/" },
    reach: async (page) => {
      await button(page, "Send").waitFor();
      if (await button(page, "Account").isVisible()) await button(page, "Account").click();
      await button(page, "Sign out").waitFor();
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
      await chartsAreDrawn(page);
      await page.getByRole("link", { name: "Chat with step 1" }).waitFor();
    },
  },
  {
    ...{ name: "policy-compared", path: "/policies/POLICY?x=gradient_step&smooth=0.5&with=RIVAL_POLICY" },
    reach: async (page) => {
      await chartsAreDrawn(page);
      await page.getByRole("button", { name: "Take rival out of the charts" }).waitFor();
      await page.getByText("Columns", { exact: true }).click();
      await page.getByRole("checkbox", { name: "entropy", exact: true }).waitFor();
    },
  },
  {
    ...{ name: "policy-note", path: "/policies/POLICY" },
    reach: async (page) => {
      await page.getByRole("button", { name: /tags/ }).click();
      await page.getByLabel("tags", { exact: true }).fill("baseline, sums");
      await page.getByLabel("note", { exact: true }).fill("The first that adds numbers.");
    },
  },
  {
    ...{ name: "policy-asks", path: "/policies/POLICY" },
    reach: async (page) => {
      await page.getByRole("link", { name: "Chat with step 1" }).waitFor();
      await page.getByRole("button", { name: "Delete agent" }).click();
      await page.getByRole("button", { name: "Fork step 0" }).click();
      await page.getByLabel("Name of the fork of step 0").waitFor();
    },
  },
  {
    ...{ name: "policy-missing", path: "/policies/nothing", announced: /404/ },
    reach: (page) => page.locator(".problem").first().waitFor(),
  },
  {
    ...{ name: "jobs", path: "/jobs" },
    reach: (page) => page.getByRole("checkbox").nth(1).waitFor(),
  },
  {
    ...{ name: "jobs-compared", path: "/jobs?with=JOB&with=RIVAL_JOB" },
    reach: chartsAreDrawn,
  },
  {
    ...{ name: "jobs-none", path: "/jobs?filter=nothing" },
    reach: (page) => page.getByText("none", { exact: true }).waitFor(),
  },
  {
    ...{ name: "job", path: "/jobs/JOB" },
    reach: async (page) => {
      await page.getByText("nothing to learn", { exact: true }).waitFor();
      await chartsAreDrawn(page);
    },
  },
  {
    ...{ name: "job-found", path: "/jobs/JOB?text=cod&sort=-mean" },
    reach: async (page) => {
      await page.getByText(/^said in/).waitFor();
      await page.locator(".group-line").first().scrollIntoViewIfNeeded();
    },
  },
  {
    ...{ name: "job-again", path: "/jobs/JOB" },
    reach: async (page) => {
      await page.getByText("Again with changes").click();
      await button(page, "Again as dry run").click();
      await page.getByText(/Nothing was trained/).waitFor();
    },
  },
  {
    ...{ name: "group", path: "/jobs/JOB/0" },
    reach: (page) => page.getByRole("article", { name: "Rollout 8" }).locator(".said").getByText(/\w/).waitFor(),
  },
  {
    ...{ name: "group-found", path: "/jobs/JOB/2?diff=no&text=cod" },
    reach: (page) => page.locator("mark").first().waitFor(),
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
    reach: chartsAreDrawn,
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
