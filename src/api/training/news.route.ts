// One stream of everything that happens to the caller's models and jobs, for a page that shows several of them.

import type { FastifyInstance } from "fastify";
import type { News } from "../../training/news.ts";
import type { TrainingService } from "../../training/service.ts";
import { principalOf, readableBy } from "../http/auth.ts";
import { OpenStreams } from "../http/streams.ts";
import { route } from "../route.ts";
import { AnyObject } from "../schema/body.ts";
import type { Service } from "../service.ts";
import { lastEventId } from "./jobs.route.ts";
import { presentEvent, presentGradientSteps } from "./present.ts";

export function registerNews(app: FastifyInstance, service: Service, { news }: TrainingService): void {
  const { log, config } = service;
  const streams = new OpenStreams(app, service);

  app.get(
    "/v1/preview/events",
    route("training", "A stream of what happens to models, steps and jobs of the workspace", { chunk: AnyObject }),
    async (request, reply) => {
      const owner = readableBy(principalOf(request));
      const { raw } = reply;
      const stream = streams.open(reply, () => {});
      let stop = () => {};
      raw.once("close", () => stop());
      try {
        const missed = await news.watch(owner, lastEventId(request), (items, cursor) => {
          // a reader this slow comes back with its last id
          if (raw.writableLength > config.streamBufferBytes) stream.cut();
          else stream.send(blocksOf(items, cursor));
        });
        stop = missed.stop;
        if (raw.destroyed) return stop();
        const ready = `event: ready\nid: ${missed.cursor}\ndata: ${JSON.stringify({ complete: missed.news !== null })}\n\n`;
        stream.send((missed.news ?? []).map(blockOf).join("") + ready);
        missed.start();
      } catch (error) {
        log.error("following the news", { error });
        stream.cut();
      }
      return reply;
    },
  );
}

/** The id comes with the last one: whoever loses the connection before gets all of them again. */
function blocksOf(items: readonly News[], cursor: string): string {
  const last = items.at(-1)!;
  return `${items.slice(0, -1).map(blockOf).join("")}id: ${cursor}\n${blockOf(last)}`;
}

/** Written once, however many read it. */
const blocks = new WeakMap<News, string>();

function blockOf(news: News): string {
  const known = blocks.get(news);
  if (known !== undefined) return known;
  const block = `event: ${news.kind}\ndata: ${JSON.stringify(dataOf(news))}\n\n`;
  blocks.set(news, block);
  return block;
}

function dataOf(news: News): object {
  switch (news.kind) {
    case "job": {
      const { id, modelId, status, progress, updatedAt } = news.job;
      const steps = presentGradientSteps(news.job);
      return { id, model_id: modelId, status, progress, gradient_steps: steps, updated_at: updatedAt };
    }
    case "job_event":
      return { job_id: news.jobId, event: presentEvent(news.event) };
    case "step": {
      const { modelId, step, metrics, createdAt } = news.step;
      return { model_id: modelId, step, metrics, created_at: createdAt };
    }
    case "model":
      return { id: news.id, deleted: news.deleted };
  }
}
