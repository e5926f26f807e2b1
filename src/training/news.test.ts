import { expect, it } from "vitest";
import { createLog } from "../observe/log.ts";
import type { JobJournal } from "./jobs/job-journal.ts";
import { NewsFeed } from "./news.ts";

type Context = ConstructorParameters<typeof NewsFeed>[0];

it("survives a first look that fails: it can be closed, and watched later", async () => {
  let isAway = true;
  const newsTable = {
    heads: async () => {
      if (isAway) throw new Error("the database is unreachable");
      return { events: 0, jobs: 0, models: 0 };
    },
    ...{ jobs: async () => [], steps: async () => [], deletedModels: async () => [] },
  };
  const log = createLog({ level: "error", format: "text" });
  const context = { newsTable, log, times: { poll: 60_000 }, server: { alone: true } };
  const journal = { watchAll: () => () => {} };
  const feed = new NewsFeed(context as unknown as Context, journal as unknown as JobJournal);
  const watchers = [feed.watch(null, null, () => {}), feed.watch(null, null, () => {})];
  for (const watcher of watchers) await expect(watcher).rejects.toThrow("the database is unreachable");
  await feed.close();
  isAway = false;
  expect(await feed.watch(null, null, () => {})).toMatchObject({ news: [] });
  await feed.close();
});
