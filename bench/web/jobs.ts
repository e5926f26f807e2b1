// Jobs to look at: finished ones of many groups, and one that does not end.
import { type Choice, FlywheelClient, type TrajectoryGroup } from "../../src/client/client.ts";
import { KEY } from "./flywheel-process.ts";

const MODEL = "flywheel-mini";
const QUESTION = "Tell me about the sea.";

export class Jobs {
  readonly client: FlywheelClient;
  #policy = { id: "", name: "bench" };
  #choices: Choice[] = [];

  constructor(url: string) {
    this.client = new FlywheelClient({ baseUrl: url, apiKey: KEY });
  }

  async prepare(): Promise<void> {
    this.#policy = await this.client.register({ project: "bench", name: this.#policy.name, base_model: MODEL });
    const messages = [{ role: "user", content: QUESTION }];
    const sampling = { n: 8, max_tokens: 32, temperature: 1, seed: 1 };
    this.#choices = (await this.client.chat({ model: this.#policy.name, messages, ...sampling })).choices;
  }

  get policy(): string {
    return this.#policy.id;
  }

  /** The id of a finished job of so many groups of eight. Two of them have something to teach, the others are quick. */
  async finished(length: number): Promise<string> {
    const groups = Array.from({ length }, (_, i) => this.#group(`Task ${i}: ${QUESTION}`, i < 2 ? i + 1 : null));
    return (await this.client.train(this.#policy.id, groups)).id;
  }

  /** The id of a job with 8,000 gradient steps. */
  async endless(): Promise<string> {
    const groups = Array.from({ length: 1000 }, () => this.#group(QUESTION, 1));
    const config = { grad_accumulation_sequences: 1 };
    return (await this.client.submit(this.#policy.id, groups, { config })).id;
  }

  /** Rewards rise in steps of `rise`; null: they are all alike. */
  #group(content: string, rise: number | null): TrajectoryGroup {
    const trajectories = this.#choices.map((choice, i) => ({
      messages_and_choices: [{ role: "user", content }, choice],
      reward: rise === null ? 1 : i * rise,
    }));
    return { trajectories };
  }
}
