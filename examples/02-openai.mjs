// Uses the OpenAI SDK unmodified. Only the base URL and the key change.
//   npm install --no-save openai
//   OPENAI_API_KEY=<token> node examples/02-openai.mjs
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.env.OPENAI_BASE_URL ?? "http://127.0.0.1:8000/v1" });
const [model] = (await client.models.list()).data;
const reply = await client.chat.completions.create({
  model: model.id,
  messages: [
    { role: "system", content: "Answer in one sentence." },
    { role: "user", content: "What is a flywheel?" },
  ],
  max_completion_tokens: 64,
});
console.log(`${model.id}: ${reply.choices[0].message.content}`);
console.log(`${reply.usage.prompt_tokens} tokens in, ${reply.usage.completion_tokens} out`);
