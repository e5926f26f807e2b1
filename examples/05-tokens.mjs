// Token-level output for trainers and evaluators: exact ids, and log-probabilities of prompt and reply.
//   OPENAI_API_KEY=<token> node examples/05-tokens.mjs
const url = (process.env.OPENAI_BASE_URL ?? "http://127.0.0.1:8000/v1").replace(/\/v1$/, "");
const post = async (path, body) => {
  const headers = { authorization: `Bearer ${process.env.OPENAI_API_KEY}`, "content-type": "application/json" };
  const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) {
    throw new Error(await response.text());
  }
  return response.json();
};

const messages = [{ role: "user", content: "Count to three." }];
const reply = await post("/v1/chat/completions", {
  messages,
  max_tokens: 8,
  temperature: 0,
  return_token_ids: true,
  logprobs: true,
  top_logprobs: 2,
  prompt_logprobs: 0,
});
const { count } = await post("/tokenize", { messages });
const [choice] = reply.choices;
console.log(`prompt: ${reply.prompt_token_ids.length} tokens, /tokenize says ${count}`);
for (const [i, entry] of choice.logprobs.content.entries()) {
  const others = entry.top_logprobs.slice(1).map((t) => `${JSON.stringify(t.token)} ${t.logprob.toFixed(3)}`);
  console.log(`${choice.token_ids[i]}\t${JSON.stringify(entry.token)}\t${entry.logprob.toFixed(3)}\tor ${others}`);
}
console.log((await post("/detokenize", { tokens: choice.token_ids })).prompt);
