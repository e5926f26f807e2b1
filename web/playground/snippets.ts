// A request as a command or a program that can be pasted. The key stays out: each reads it from FLYWHEEL_API_KEY.
import type { Body } from "./message.ts";

export const LANGUAGES = ["curl", "TypeScript", "Python"] as const;
export type Language = (typeof LANGUAGES)[number];

export function snippet(language: Language, body: Body, origin: string): string {
  switch (language) {
    case "curl":
      return curl(body, origin);
    case "TypeScript":
      return typeScript(body, origin);
    case "Python":
      return python(body, origin);
  }
}

function curl(body: Body, origin: string): string {
  const json = JSON.stringify(body, null, 2).replaceAll("'", `'\\''`);
  return [
    `curl -N ${origin}/v1/chat/completions \\`,
    `  -H "Authorization: Bearer $FLYWHEEL_API_KEY" \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d '${json}'`,
  ].join("\n");
}

function typeScript(body: Body, origin: string): string {
  return `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${origin}/v1", apiKey: process.env.FLYWHEEL_API_KEY });
const reply = await client.chat.completions.create(${JSON.stringify(once(body), null, 2)});
console.log(reply.choices.map((choice) => choice.message.content));
`;
}

/** Fields that OpenAI's Python package takes by name. The others go into extra_body. */
const NAMED = new Set(
  (
    "model messages n seed temperature top_p max_tokens presence_penalty frequency_penalty logprobs top_logprobs " +
    "response_format stop tools tool_choice logit_bias user"
  ).split(" "),
);

function python(body: Body, origin: string): string {
  const fields = Object.entries(once(body));
  const named = fields.filter(([name]) => NAMED.has(name)).map(([name, value]) => `    ${name}=${literal(value)},`);
  const extra = fields.filter(([name]) => !NAMED.has(name));
  const more = extra.length === 0 ? [] : [`    extra_body=${literal(Object.fromEntries(extra))},`];
  return `import os
from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key=os.environ["FLYWHEEL_API_KEY"])
reply = client.chat.completions.create(
${[...named, ...more].join("\n")}
)
print([choice.message.content for choice in reply.choices])
`;
}

/** The same request, answered in one piece. */
function once(body: Body): Body {
  const { stream: _stream, stream_options: _options, ...rest } = body;
  return rest;
}

/** A JSON value as Python writes it. */
function literal(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, item]) => `${JSON.stringify(name)}: ${literal(item)}`)
    .join(", ")}}`;
}
