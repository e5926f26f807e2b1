// One recorded exchange with another server, and replaying its request against this one.
import { readFileSync } from "node:fs";
import { parseExactJson, writeExactJson } from "../../src/json/exact-json.ts";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface Reply {
  status: number;
  /** A JSON body, or the events of a stream, or any other body as text. */
  json?: Json;
  sse?: Json[];
  text?: string;
}

export interface Recording {
  name: string;
  method: string;
  path: string;
  headers: Record<string, string>;
  /** The body as it is sent, with every digit of its numbers. */
  text: string;
  reply: Reply;
}

export function readRecordings(file: string): Recording[] {
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.filter((line) => line !== "").map(readRecording);
}

function readRecording(line: string): Recording {
  const { body } = parseExactJson(line) as { body: unknown };
  return { ...(JSON.parse(line) as Recording), text: typeof body === "string" ? body : writeExactJson(body) };
}

/** Sends the request again. Recordings carry no token: those that were refused for theirs are sent without one. */
export async function replay(recording: Recording, url: string, token: string): Promise<Reply> {
  const { method, path, headers, text: body } = recording;
  const authorization: Record<string, string> =
    recording.reply.status === 401 ? {} : { authorization: `Bearer ${token}` };
  const send = () =>
    fetch(url + path, {
      method,
      headers: { "content-type": "application/json", ...authorization, ...lowerCase(headers) },
      ...(method === "GET" ? {} : { body }),
    });
  // vLLM closes idle connections after five seconds. A request that is just being sent on one does not arrive.
  const response = await send().catch(send);
  const text = await response.text();
  if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
    return { status: response.status, sse: events(text) };
  }
  try {
    return { status: response.status, json: JSON.parse(text) as Json };
  } catch {
    return { status: response.status, ...(text === "" ? { json: null } : { text }) };
  }
}

function lowerCase(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

function events(text: string): Json[] {
  const data = text.split("\n\n").filter((event) => event.startsWith("data: "));
  return data.map((event) => event.slice(6)).map((event) => (event === "[DONE]" ? event : (JSON.parse(event) as Json)));
}
