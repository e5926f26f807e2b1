// A server with vLLM's routes and no model, as a process of its own: it takes no processor time from the measured one.

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Ticker, tokenAt } from "./pace.ts";

const ticker = new Ticker();
let streams = 0;

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  if (request.url === "/v1/completions") return complete(JSON.parse(Buffer.concat(chunks).toString()), response);
  const json = (value: unknown) => response.setHeader("content-type", "application/json").end(JSON.stringify(value));
  if (request.url === "/version") return json({ version: "0.27.1" });
  if (request.url === "/v1/models") return json({ data: [{ id: "base", parent: null, max_model_len: 2048 }] });
  return response.end(request.url === "/metrics" ? "process_start_time_seconds 1\n" : "");
});

function complete(body: { max_tokens: number; stream?: boolean; prompt: number[] }, response: ServerResponse): void {
  const stream = streams++;
  const choice = (ids: number[], isLast: boolean) => ({
    index: 0,
    text: " word",
    logprobs: null,
    finish_reason: isLast ? "length" : null,
    stop_reason: null,
    prompt_token_ids: null,
    token_ids: ids,
  });
  const head = { id: `cmpl-${stream}`, object: "text_completion", created: 1_790_000_000, model: "base" };
  const usage = { prompt_tokens: body.prompt.length, completion_tokens: body.max_tokens };
  if (body.stream !== true) {
    response.end(JSON.stringify({ ...head, choices: [choice([tokenAt(stream, 0)], true)], usage }));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  let position = 0;
  ticker.follow(body.prompt, () => {
    if (response.destroyed) return false;
    const isLast = position === body.max_tokens - 1;
    const event = { ...head, choices: [choice([tokenAt(stream, position++)], isLast)] };
    response.write(`data: ${JSON.stringify(event)}\n\n`);
    if (isLast) response.end(`data: ${JSON.stringify({ ...head, choices: [], usage })}\n\ndata: [DONE]\n\n`);
    return !isLast;
  });
}

server.listen(0, "127.0.0.1", () =>
  process.send!({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }),
);
process.on("disconnect", () => process.exit());
