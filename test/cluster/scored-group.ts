// Trajectory groups of a training request, as clients send what they sampled: the tokens of the replies, with log-probabilities.
// Without these, nothing would be learnt from them.

/** Two replies, the first one better than the second. Both are ids of tokens. */
export function scoredGroup(better: readonly number[], worse: readonly number[]): object {
  return {
    trajectories: [better, worse].map((ids, i) => ({
      messages_and_choices: [
        { role: "user", content: "a b c" },
        {
          message: { role: "assistant", content: "" },
          logprobs: { content: ids.map((id) => ({ token: `token_id:${id}`, logprob: -1 })) },
        },
      ],
      reward: 1 - i,
    })),
  };
}
