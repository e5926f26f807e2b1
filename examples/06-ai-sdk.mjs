// Uses the Vercel AI SDK through its OpenAI-compatible provider.
//   npm install --no-save ai @ai-sdk/openai-compatible
//   OPENAI_API_KEY=<token> node examples/06-ai-sdk.mjs
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { streamText } from "ai";

const provider = createOpenAICompatible({
  name: "flywheel",
  baseURL: process.env.OPENAI_BASE_URL ?? "http://127.0.0.1:8000/v1",
  apiKey: process.env.OPENAI_API_KEY,
  includeUsage: true,
});
const { textStream, usage } = streamText({
  model: provider(process.env.MODEL ?? "flywheel-mini"),
  prompt: "What is a flywheel?",
  maxOutputTokens: 64,
});
for await (const piece of textStream) {
  process.stdout.write(piece);
}
console.log(`\n${(await usage).outputTokens} tokens`);
