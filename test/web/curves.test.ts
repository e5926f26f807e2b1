// Charts in a browser: the shared cursor with its values, zooming while curves grow, gaps, labels, smoothing, several policies and
// jobs in one chart, and columns to choose. On a tiny model with real gradients.
import type { Page } from "playwright-core";
import { beforeAll, expect, it } from "vitest";
import type { TrainingConfig } from "../../src/client/types.ts";
import { number } from "../../web/format.ts";
import { shared } from "../support/shared-server.ts";
import { inBrowser, seriousFindings, sidewaysScroll } from "./browser.ts";
import { answers, groupOf, KEY, type LearningServer, startLearningServer } from "./learning-server.ts";

interface CurvesBody {
  columns: Record<string, (number | null)[]>;
}

inBrowser("curves", (bench) => {
  const server = shared<LearningServer>(startLearningServer);
  const ids: Record<string, string> = {};
  const jobs: string[] = [];

  /** Eight rollouts, one gradient step each. */
  const train = async (name: string, config: TrainingConfig = {}) => {
    const groups = [groupOf("hello", await answers(server.client, name, "hello", 8), [0, 1, 2, 3, 4, 5, 6, 7])];
    const own = { learning_rate: 1e-4, grad_accumulation_sequences: 1, ...config };
    return server.client.train(ids[name]!, groups, { config: own });
  };
  beforeAll(async () => {
    for (const name of ["first", "second"]) {
      ids[name] = (await server.register(name)).id;
      const { id } = await train(name, name === "first" ? {} : { learning_rate: 1e-3 });
      jobs.push(id);
    }
  });

  const columnsOf = async (path: string): Promise<CurvesBody["columns"]> => {
    const headers = { authorization: `Bearer ${KEY}` };
    const reply = await fetch(`${server.url}/v1/preview/${path}`, { headers });
    expect(reply.status).toBe(200);
    return ((await reply.json()) as CurvesBody).columns;
  };
  const chart = (page: Page, title: string) =>
    page.locator(".chart").filter({ has: page.getByText(title, { exact: true }) });
  /** Puts the pointer at a share of a chart's width. */
  const point = async (page: Page, title: string, share: number) => {
    const box = (await chart(page, title).locator(".u-over").boundingBox())!;
    await page.mouse.move(box.x + 1 + (box.width - 3) * share, box.y + box.height / 2);
  };

  it("shows the values under one cursor in all charts", async () => {
    const page = await bench.open(`${server.url}/policies/${ids.first}?x=gradient_step`, { key: KEY });
    await chart(page, "loss").locator("canvas").waitFor();
    await chart(page, "loss").scrollIntoViewIfNeeded();
    const { loss, entropy } = await columnsOf(`models/${ids.first}/curves?x=gradient_step`);
    expect(loss).toHaveLength(8);
    await chart(page, "loss").getByText("newest").waitFor();
    await point(page, "loss", 0);
    for (const [title, values] of [
      ["loss", loss],
      ["entropy", entropy],
    ] as const) {
      await chart(page, title).getByText("at gradient step 1").waitFor();
      await chart(page, title)
        .locator(".legend")
        .filter({ hasText: number(values![0]!) })
        .waitFor();
    }
    await point(page, "loss", 1);
    await chart(page, "entropy").getByText("at gradient step 8").waitFor();
    await page.mouse.move(5, 5);
    await chart(page, "entropy").getByText("newest").waitFor();
  });

  it("keeps what was zoomed into while curves grow", async () => {
    const page = await bench.open(`${server.url}/policies/${ids.first}?x=gradient_step`, { key: KEY });
    const loss = chart(page, "loss");
    await loss.locator("canvas").waitFor();
    await loss.scrollIntoViewIfNeeded();
    const box = (await loss.locator(".u-over").boundingBox())!;
    await page.mouse.move(box.x + box.width * 0.4, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.8, box.y + 20, { steps: 5 });
    await page.mouse.up();
    const all = page.getByRole("button", { name: "Show all of loss" });
    await all.waitFor();
    const before = (await columnsOf(`models/${ids.first}/curves?x=gradient_step`)).loss!.length;
    await train("first");
    await loss.getByText("numbers of loss").click();
    // the newest rows are here, and what is shown is still a part
    await loss.getByRole("rowheader", { name: String(before + 8), exact: true }).waitFor();
    expect(await all.count()).toBe(1);
    await point(page, "loss", 1);
    const end = /at gradient step (\d+)/.exec((await loss.locator(".legend-place").textContent())!)![1]!;
    expect(Number(end)).toBeLessThan(8);
    await all.click();
    await all.waitFor({ state: "detached" });
    await point(page, "loss", 1);
    await loss.getByText(`at gradient step ${before + 8}`).waitFor();
  });

  it("draws no line where a metric is missing, and cuts no label", async () => {
    const page = await bench.open(`${server.url}/policies/${ids.first}`, { key: KEY });
    await chart(page, "loss").locator("canvas").waitFor();
    // what is drawn of a curve with a hole and huge values, by the page's own code
    const path = `**/v1/preview/models/${ids.first}/curves**`;
    const values = [1, 1, null, null, null, 1, 1];
    const columns = {
      step: values.map((_, i) => i),
      loss: values,
      grad_norm: values.map((_, i) => 123_456_789 + i * 1e7),
    };
    await page.route(path, (route) =>
      route.fulfill({
        json: { object: "curves", keys: ["loss"], rows: 7, columns, next: 6, has_more: false, all_keys: [] },
      }),
    );
    await page.reload();
    await chart(page, "loss").locator("canvas").waitFor();
    await expect.poll(() => page.evaluate(INK_BY_THIRDS)).toEqual([true, false, true]);
    await expect.poll(() => page.evaluate(LABELS_CUT)).toBe(false);
  });

  it("keeps the raw curve beside the smooth one, and draws the columns that are chosen", async () => {
    const page = await bench.open(`${server.url}/policies/${ids.second}?x=gradient_step`, { key: KEY });
    const loss = chart(page, "loss");
    await loss.locator("canvas").waitFor();
    const colours = () => page.evaluate(COLOURS_OF_FIRST);
    const plain = (await colours()) as number;
    await page.getByLabel(/^smooth/).fill("0.9");
    await expect.poll(colours).toBeGreaterThan(plain);
    await loss.scrollIntoViewIfNeeded();
    await point(page, "loss", 1);
    const raw = (await columnsOf(`models/${ids.second}/curves?x=gradient_step`)).loss!.at(-1)!;
    await loss
      .locator(".legend")
      .filter({ hasText: `(${number(raw)})` })
      .waitFor();
    await page.getByText("Columns", { exact: true }).click();
    await page.getByLabel("kl_old_new_k1", { exact: true }).check();
    await chart(page, "kl_old_new_k1").locator("canvas").waitFor();
    await loss.waitFor({ state: "detached" });
    expect(new URL(page.url()).searchParams.getAll("key")).toEqual(["kl_old_new_k1"]);
    await page.reload();
    await chart(page, "kl_old_new_k1").locator("canvas").waitFor();
    expect(await page.locator(".chart").count()).toBe(1);
  });

  it("puts several policies into one chart", async () => {
    const page = await bench.open(`${server.url}/policies/${ids.second}?x=gradient_step`, { key: KEY });
    await page.getByLabel("beside").selectOption({ label: "first (p)" });
    const [one, other] = [
      await columnsOf(`models/${ids.second}/curves?x=gradient_step`),
      await columnsOf(`models/${ids.first}/curves?x=gradient_step`),
    ];
    const loss = chart(page, "loss");
    await loss.getByText(/^first/).waitFor();
    await loss.scrollIntoViewIfNeeded();
    await point(page, "loss", 0);
    await loss.getByText(new RegExp(`^second ${number(one.loss![0]!).replaceAll(".", "\\.")}`)).waitFor();
    await loss.getByText(new RegExp(`^first ${number(other.loss![0]!).replaceAll(".", "\\.")}`)).waitFor();
    expect(new URL(page.url()).searchParams.getAll("with")).toEqual([ids.first]);
    expect(await seriousFindings(page)).toEqual([]);
    await page.reload();
    await loss.getByText(/^first/).waitFor();
    await page.getByRole("button", { name: "Take first out of the charts" }).click();
    await expect.poll(() => loss.getByText(/^first/).count()).toBe(0);
  });

  it("lists all jobs, sorts and filters them, and draws several in one chart", async () => {
    const page = await bench.open(`${server.url}/policies`, { key: KEY });
    await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Jobs" }).click();
    await page.getByRole("heading", { name: /^Jobs \(\d+\)$/ }).waitFor();
    const rows = page.getByRole("region", { name: "Jobs", exact: true }).locator("tbody tr");
    const policies = () => rows.locator("td:nth-child(2)").allTextContents();
    await expect.poll(policies).toContain("second");
    const head = page.getByRole("button", { name: "policy", exact: true });
    await head.click();
    await expect.poll(policies).toEqual([...(await policies())].sort());
    await head.click();
    await expect.poll(async () => (await policies())[0]).toBe("second");
    expect(await page.getByRole("columnheader", { name: "policy" }).getAttribute("aria-sort")).toBe("descending");
    await page.reload();
    await expect.poll(async () => (await policies())[0]).toBe("second");
    for (const job of jobs) await page.getByLabel(`Draw the curves of job ${job.slice(0, 8)}`).check();
    const loss = chart(page, "loss");
    for (const job of jobs) await loss.getByText(new RegExp(`^${job.slice(0, 8)}`)).waitFor();
    await point(page, "loss", 0);
    const { loss: values } = await columnsOf(`training-jobs/${jobs[1]}/curves`);
    await loss
      .locator(".legend")
      .filter({ hasText: `${jobs[1]!.slice(0, 8)} ${number(values![0]!)}` })
      .waitFor();
    await page.getByLabel("filter").fill("second");
    await expect.poll(() => rows.count()).toBe(1);
    expect(await seriousFindings(page)).toEqual([]);
    await page.setViewportSize({ width: 360, height: 800 });
    await expect.poll(() => sidewaysScroll(page)).toBe(0);
  });

  it("keeps tags and notes of policies and jobs, and finds them", async () => {
    const page = await bench.open(`${server.url}/policies/${ids.second}`, { key: KEY });
    await page.getByRole("button", { name: "Add tags or a note" }).click();
    await expect.poll(() => page.evaluate("document.activeElement.name")).toBe("tags");
    await page.getByLabel("tags").fill("keep, sweep-3");
    await page.getByLabel("note").fill("the <b>best</b> rate so far");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("the <b>best</b> rate so far").waitFor();
    await page.goto(`${server.url}/policies?filter=sweep-3`);
    const row = page.getByRole("row").filter({ hasText: "second" });
    await row.getByText("keep", { exact: true }).waitFor();
    await expect.poll(() => page.getByRole("row").count()).toBe(2);
    await page.goto(`${server.url}/jobs/${jobs[0]}`);
    await page.getByRole("button", { name: "Add tags or a note" }).click();
    await page.getByLabel("tags").fill("odd");
    await page.keyboard.press("Enter");
    await page.getByText("odd", { exact: true }).waitFor();
    await page.goto(`${server.url}/jobs?filter=odd`);
    await page
      .getByRole("row")
      .filter({ hasText: jobs[0]!.slice(0, 8) })
      .getByText("odd")
      .waitFor();
    bench.announce(/422/);
    await page.goto(`${server.url}/jobs/${jobs[0]}`);
    await page.getByRole("button", { name: "Edit tags and note" }).click();
    await page.getByLabel("tags").fill("x".repeat(41));
    await page.keyboard.press("Enter");
    await page.getByRole("alert").filter({ hasText: /tags/ }).waitFor();
    await page.getByLabel("tags").fill("");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Add tags or a note" }).waitFor();
  });
});

/** Runs in the page: the pixels of a chart's plotting area that are not transparent and not of the grid. */
const PLOT = `(title) => {
  const figure = [...document.querySelectorAll(".chart")].find((one) => one.querySelector("b").textContent === title);
  const canvas = figure.querySelector("canvas");
  const over = figure.querySelector(".u-over");
  const ratio = canvas.width / canvas.clientWidth;
  const part = [over.offsetLeft, over.offsetTop, over.offsetWidth, over.offsetHeight].map((value) => Math.round(value * ratio));
  return { width: part[2], height: part[3], pixels: canvas.getContext("2d").getImageData(...part).data, canvas, part };
}`;

/** Runs in the page: whether each third of the loss has pixels of its line. */
const INK_BY_THIRDS = `(() => {
  const { width, height, pixels } = (${PLOT})("loss");
  const found = [false, false, false];
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const [r, g, b, a] = pixels.slice((y * width + x) * 4, (y * width + x) * 4 + 4);
      const isLine = a > 200 && g - r > 40;
      if (isLine && (x < width * 0.3 || x > width * 0.7)) found[x < width / 2 ? 0 : 2] = true;
      else if (isLine && x > width * 0.4 && x < width * 0.6) found[1] = true;
    }
  }
  return found;
})()`;

/** Runs in the page: whether anything is written in the outermost pixels of a chart with long labels. */
const LABELS_CUT = `(() => {
  const { canvas } = (${PLOT})("gradient norm");
  const context = canvas.getContext("2d");
  const inked = (...part) => context.getImageData(...part).data.some((value, i) => i % 4 === 3 && value > 0);
  return inked(0, 0, 2, canvas.height) || inked(canvas.width - 2, 0, 2, canvas.height);
})()`;

/** Runs in the page: how many different colours the plotting area of the loss has. */
const COLOURS_OF_FIRST = `(() => {
  const { pixels } = (${PLOT})("loss");
  const found = new Set();
  for (let i = 0; i < pixels.length; i += 4) found.add(pixels.slice(i, i + 4).join());
  return found.size;
})()`;
