// Pictures of every page in every state, in three sizes and two themes, for people to look at.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { FlywheelClient } from "../../src/client/client.ts";
import { addressOf, type Places, STATES, type State } from "../../test/web/states.ts";
import { tellStory } from "../../test/web/stories.ts";
import { KEY } from "./flywheel-process.ts";

const SIZES = { wide: [1440, 900], tablet: [1024, 768], phone: [390, 844] } as const;
const THEMES = ["light", "dark"] as const;
const WAIT_MS = 20_000;

/** `only`: part of a state's name. `url` is a fresh server with the bundled model. */
export async function takeAll(browser: Browser, url: string, folder: string, only: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const places = { url, ...(await tellStory(new FlywheelClient({ baseUrl: url, apiKey: KEY }))) };
  const failed: string[] = [];
  for (const state of STATES.filter(({ name }) => name.includes(only))) {
    for (const [size, [width, height]] of Object.entries(SIZES)) {
      for (const theme of THEMES) {
        const path = join(folder, `${state.name}-${size}-${theme}.png`);
        const isTaken = await take(browser, state, places, { width, height, theme, path });
        console.log(isTaken ? path : `${path} FAILED`);
        if (!isTaken) failed.push(path);
      }
    }
  }
  if (failed.length > 0) throw new Error(`${failed.length} pictures could not be taken`);
}

interface Picture {
  width: number;
  height: number;
  theme: (typeof THEMES)[number];
  path: string;
}

async function take(browser: Browser, state: State, places: Places, picture: Picture): Promise<boolean> {
  const { width, height, theme, path } = picture;
  const viewport = { width, height };
  const context = await browser.newContext({ viewport, colorScheme: theme, reducedMotion: "reduce" });
  context.setDefaultTimeout(WAIT_MS);
  if (!state.isSignedOut) await context.addInitScript(`sessionStorage.setItem("flywheel.key", ${JSON.stringify(KEY)})`);
  const page = await context.newPage();
  try {
    await page.goto(addressOf(state, places));
    await state.reach(page);
    return true;
  } catch (error) {
    console.error(error);
    return false;
  } finally {
    await page.screenshot({ path });
    await context.close();
  }
}
