// The model that a request runs on, held until the request is over.

export interface ServedModel {
  /** What replies carry as `model`. */
  name: string;
  /** Content version of the adapter, or null for the base model. */
  adapter: string | null;
  /**
   * Output is meant for training. Every choice of a chat has log probabilities, `prompt_token_ids` and `token_ids`, and
   * tokens are written as ids, unless the request says otherwise. Text completions have the ids.
   */
  recordsForTraining: boolean;
  /** Step of a trained policy, shown as `policy_version` in every choice; null for anything else. */
  policyVersion: number | null;
  /** Call it once the request is over, however it ended. Until then the adapter stays loaded. */
  release(): void;
}
