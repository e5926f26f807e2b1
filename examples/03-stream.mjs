// Streams two alternatives at once and stops reading after a while.
//   npm install --no-save openai
//   OPENAI_API_KEY=<token> node examples/03-stream.mjs
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.env.OPENAI_BASE_URL ?? "http://127.0.0.1:8000/v1" });
const stream = await client.chat.completions.create({
  model: "",
  messages: [{ role: "user", content: "Tell me a story." }],
  n: 2,
  seed: 7,
  stream: true,
  stream_options: { include_usage: true },
});
const stories = ["", ""];
for await (const chunk of stream) {
  for (const { index, delta } of chunk.choices) {
    stories[index] += delta.content ?? "";
  }
  if (stories.join("").length > 400) {
    break; // closes the connection, and the server stops generating
  }
}
for (const [i, story] of stories.entries()) {
  console.log(`story ${i + 1}: ${story}\n`);
}
