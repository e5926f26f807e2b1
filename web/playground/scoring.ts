// Scores a text under a model: one prefill gives the log-probability of every token, and the likeliest others. The numbers are
// the same, to the last bit, as when the model wrote the text.
import { postJson } from "../server.ts";
import type { Alternative, Token } from "./tokens.ts";

interface Scored {
  choices: { prompt_logprobs: (Record<string, { logprob: number; decoded_token: string }> | null)[] }[];
}

/** The tokens from `from` on, each with `top` alternatives. */
export async function score(
  model: string,
  tokenIds: readonly number[],
  from: number,
  top: number,
  signal?: AbortSignal,
): Promise<Token[]> {
  const body = { model, prompt: tokenIds, max_tokens: 0, echo: true, prompt_logprobs: Math.max(1, top) };
  const { choices } = await postJson<Scored>("/completions", body, { signal });
  return tokensFrom(choices[0]!.prompt_logprobs, tokenIds, from);
}

export function tokensFrom(
  positions: Scored["choices"][number]["prompt_logprobs"],
  tokenIds: readonly number[],
  from: number,
): Token[] {
  return tokenIds.slice(from).map((id, i) => {
    const here = positions[from + i] ?? {};
    const all = Object.entries(here).map(([key, { logprob, decoded_token }]): Alternative => {
      const bytes = new TextEncoder().encode(decoded_token);
      return { id: Number(key), text: decoded_token, bytes, logprob };
    });
    const own = all.find((alternative) => alternative.id === id);
    const text = own?.text ?? "";
    const top = all.sort((a, b) => b.logprob - a.logprob);
    return { id, text, bytes: [...new TextEncoder().encode(text)], logprob: own?.logprob ?? Number.NaN, top };
  });
}
