// A client for training: register a model, sample from its policy, submit scored trajectories, follow the job. It has no
// dependencies, and runs in Node and in browsers. rollouts.ts gathers rollouts in groups.
import { ApiError, backoffMs, Connection, type ConnectionOptions, isConnectionFault, sleep } from "./http.ts";
import { serverSentEvents } from "./server-sent-events.ts";
import type {
  ChatChunk,
  ChatCompletion,
  Checkpoint,
  DeletedCheckpoints,
  Me,
  Message,
  ServerInfo,
  ServerStatus,
  SessionCode,
  SftConfig,
  SftExample,
  TrainableModel,
  TrainingConfig,
  TrainingEvent,
  TrainingJob,
  TrajectoryGroup,
} from "./types.ts";

// Re-exported, so that a program imports only this file.
export { ApiError, type ConnectionOptions } from "./http.ts";
export type * from "./types.ts";

export interface RegisterOptions {
  project: string;
  name: string;
  base_model?: string;
  entity?: string;
  from?: { model_id: string; step?: number };
}

export interface TrainOptions extends SubmitOptions {
  config?: TrainingConfig;
  /** Called for every event as it happens. */
  onEvent?: (event: TrainingEvent) => void;
}

export interface SubmitOptions {
  /** Sending the same key and body again does not create another job. */
  idempotencyKey?: string;
  signal?: AbortSignal;
}

export class TrainingFailedError extends Error {
  readonly jobId: string;

  constructor(jobId: string, message: string) {
    super(message);
    this.name = "TrainingFailedError";
    this.jobId = jobId;
  }
}

interface Page<Item> {
  data: Item[];
  has_more: boolean;
}

export class FlywheelClient {
  readonly #connection: Connection;

  constructor(options: ConnectionOptions) {
    this.#connection = new Connection(options);
  }

  /** Names of the models that can be trained. */
  baseModels(): Promise<string[]> {
    return this.#connection.json("GET", "/preview/base-models");
  }

  /** Who the key belongs to. */
  me(): Promise<Me> {
    return this.#connection.json("GET", "/me");
  }

  /** A link that signs a browser in as this client, once. */
  sessionCode(): Promise<SessionCode> {
    return this.#connection.json("POST", "/session-codes");
  }

  /** The server: its model, limits and defaults, and how busy it is. */
  server(): Promise<ServerInfo> {
    return this.#connection.json("GET", "/server");
  }

  /** The servers on the same database as the one that answers. */
  async servers(): Promise<ServerStatus[]> {
    return (await this.#connection.json<{ data: ServerStatus[] }>("GET", "/preview/servers")).data;
  }

  /** Creates the model, or returns the existing one with that name. */
  register(options: RegisterOptions): Promise<TrainableModel> {
    return this.#connection.json("POST", "/preview/models", { body: { ...options, return_existing: true } });
  }

  models(): AsyncGenerator<TrainableModel> {
    return this.#pages("/preview/models", {});
  }

  async deleteModel(modelId: string): Promise<void> {
    await this.#connection.json("DELETE", `/preview/models/${modelId}`);
  }

  checkpoints(modelId: string, order: "asc" | "desc" = "asc"): AsyncGenerator<Checkpoint> {
    return this.#pages(`/preview/models/${modelId}/checkpoints`, { order });
  }

  async latestStep(modelId: string): Promise<number> {
    const checkpoint = await this.#connection.json<Checkpoint>("GET", `/preview/models/${modelId}/checkpoints/latest`);
    return checkpoint.step;
  }

  deleteCheckpoints(modelId: string, steps: readonly number[]): Promise<DeletedCheckpoints> {
    return this.#connection.json("DELETE", `/preview/models/${modelId}/checkpoints`, { body: { steps } });
  }

  /** Creates a new step with the weights of an old one. */
  rollback(modelId: string, step: number): Promise<Checkpoint> {
    return this.#connection.json("POST", `/preview/models/${modelId}/rollback`, { body: { step } });
  }

  /** Records rewards and metrics of evaluated groups with the newest step. */
  async log(modelId: string, split: string, groups: readonly TrajectoryGroup[]): Promise<void> {
    const body = { split, trajectory_groups: groups };
    await this.#connection.json("POST", `/preview/models/${modelId}/log`, { body });
  }

  chat(body: { model: string; messages: Message[]; [field: string]: unknown }, signal?: AbortSignal) {
    return this.#connection.json<ChatCompletion>("POST", "/chat/completions", { body, signal });
  }

  /** Yields the pieces of a reply. Throws ApiError also when the reply breaks off with an error; its status is 200 then. */
  async *chatStream(
    body: { model?: string | undefined; messages: Message[]; [field: string]: unknown },
    signal?: AbortSignal,
  ): AsyncGenerator<ChatChunk> {
    const options = { body: { ...body, stream: true }, signal };
    const response = await this.#connection.request("POST", "/chat/completions", options);
    for await (const { data } of serverSentEvents(response.body!)) {
      if (data === "[DONE]") return;
      const chunk = JSON.parse(data) as ChatChunk & { error?: { message: string } };
      if (chunk.error !== undefined) throw new ApiError(response.status, chunk.error.message, chunk);
      yield chunk;
    }
  }

  /** Submits a job and returns at once. */
  submit(modelId: string, groups: readonly TrajectoryGroup[], options: TrainOptions = {}): Promise<TrainingJob> {
    const { config, ...rest } = options;
    const body = { model_id: modelId, trajectory_groups: groups, ...(config ? { experimental_config: config } : {}) };
    return this.#submit("/preview/training-jobs", body, rest);
  }

  /** Submits a supervised job and returns at once. It trains the assistant's turns of the examples. */
  submitExamples(
    modelId: string,
    examples: readonly SftExample[],
    { config, ...rest }: SubmitOptions & { config?: SftConfig } = {},
  ): Promise<TrainingJob> {
    const body = { model_id: modelId, training_data: examples, ...(config ? { config } : {}) };
    return this.#submit("/preview/sft-training-jobs", body, rest);
  }

  #submit(path: string, body: unknown, { idempotencyKey, signal }: SubmitOptions): Promise<TrainingJob> {
    const headers = idempotencyKey ? { headers: { "idempotency-key": idempotencyKey } } : {};
    return this.#connection.json("POST", path, { body, ...headers, signal });
  }

  /** Submits a job and waits until it ends. Throws TrainingFailedError if it made no new step. */
  async train(modelId: string, groups: readonly TrajectoryGroup[], options: TrainOptions = {}): Promise<TrainingJob> {
    const job = await this.submit(modelId, groups, options);
    for await (const event of this.events(job.id, options.signal)) {
      options.onEvent?.(event);
      if (event.type === "training_failed") {
        throw new TrainingFailedError(job.id, event.data.error_message ?? "the training job failed");
      }
    }
    return this.job(job.id);
  }

  job(jobId: string): Promise<TrainingJob> {
    return this.#connection.json("GET", `/preview/training-jobs/${jobId}`);
  }

  /** Newest first. */
  jobs(status: TrainingJob["status"]): AsyncGenerator<TrainingJob> {
    return this.#pages("/preview/training-jobs", { status });
  }

  cancel(jobId: string): Promise<TrainingJob> {
    return this.#connection.json("POST", `/preview/training-jobs/${jobId}/cancel`);
  }

  /** Yields all events of a job, reconnecting as often as needed. */
  async *events(jobId: string, signal?: AbortSignal): AsyncGenerator<TrainingEvent> {
    let last: string | null = null;
    /** Connections in a row without an event. */
    let emptyConnections = 0;
    for (;;) {
      // Outside the try: if all retries fail, the server is gone.
      const response: Response = await this.#connection.request("GET", `/preview/training-jobs/${jobId}/events`, {
        headers: { accept: "text/event-stream", ...(last === null ? {} : { "last-event-id": last }) },
        signal,
      });
      if (response.body === null) return; // no more events
      const before: string | null = last;
      try {
        for await (const { event: name, data } of serverSentEvents(response.body)) {
          if (name === "error") break; // the next request says the same
          const event = JSON.parse(data) as TrainingEvent;
          last = event.id;
          yield event;
          if (event.type === "training_ended" || event.type === "training_failed") return;
        }
      } catch (error) {
        if (signal?.aborted || !isConnectionFault(error)) throw error;
      }
      emptyConnections = last === before ? emptyConnections + 1 : 0;
      if (emptyConnections > 0) await sleep(backoffMs(emptyConnections - 1), signal);
    }
  }

  async *#pages<Item extends { id: string }>(path: string, query: Record<string, string>): AsyncGenerator<Item> {
    let after: string | null = null;
    for (;;) {
      const page: Page<Item> = await this.#connection.json("GET", path, { query: { ...query, after, limit: 100 } });
      yield* page.data;
      if (!page.has_more) return;
      after = page.data.at(-1)!.id;
    }
  }
}
