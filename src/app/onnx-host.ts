// The model module of the embedded engine: opens a checkpoint in the engine thread and runs it on ONNX Runtime.

import type { ModelHost } from "../engine/thread/engine-loop.ts";
import { GrammarConstraintFactory } from "../grammar/match/constraint-factory.ts";
import type { TokenVocabulary } from "../grammar/match/token-vocabulary.ts";
import { reopenCheckpoint } from "../model/checkpoint/checkpoint.ts";
import { DecoderRunner, type DecoderRunnerOptions } from "../model/decoder-runner.ts";

export interface OnnxHostOptions extends DecoderRunnerOptions {
  /** A checkpoint folder in Hugging Face layout, or a GGUF file. */
  folder: string;
  /** Identity of the checkpoint when the engine was made. A restarted thread must not read other weights. */
  identity: string;
  /** Vocabulary for token masks; null = this engine takes no grammars. */
  vocabulary: TokenVocabulary | null;
}

export async function createRunner(options: unknown, adaptersToCome: boolean): Promise<ModelHost> {
  const { folder, identity, vocabulary, ...given } = options as OnnxHostOptions;
  const runnerOptions = { ...given, adaptersFromStart: given.adaptersFromStart || adaptersToCome };
  const checkpoint = reopenCheckpoint(folder, identity);
  try {
    const runner = await DecoderRunner.create(checkpoint, runnerOptions);
    const host: ModelHost = { runner, adapters: runner.adapters, close: () => runner.close() };
    if (vocabulary !== null) {
      const constraints = new GrammarConstraintFactory(vocabulary);
      constraints.prepare();
      host.constraints = constraints;
    }
    return host;
  } finally {
    checkpoint.close();
  }
}
