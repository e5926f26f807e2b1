// The options of training: part of the table in options.ts.
import { flag, integer, kept, list, type Option, oneOf, seconds, storage, text } from "./option.ts";

export const TRAINING_OPTIONS = {
  training: flag("Training", true, "Run training jobs and serve trained policies. If off, their routes do not exist."),
  trainer: oneOf(
    "Training",
    ["onnx", "torch"],
    "onnx",
    "What computes gradients: `onnx` in this package, on processors; `torch` with PyTorch, on GPUs (docs/guides/gpu-training.md).",
  ),
  trainerCommand: text(
    "Training",
    "torchrun --standalone --nproc-per-node=gpu -m flywheel_trainer",
    "Command that starts the torch trainer. It may name another Python, other machines or a launcher.",
    { placeholder: "COMMAND" },
  ),
  trainerAddress: text(
    "Training",
    null,
    "Where a torch trainer on other machines connects to this one. Default: a Unix socket.",
    { placeholder: "HOST[:PORT]" },
  ),
  trainerKeyFile: text(
    "Training",
    null,
    "File with a key of 32 characters or more, at the same path on every machine of the torch trainer. Needed with a --trainer-address that is not loopback.",
    { placeholder: "FILE" },
  ),
  trainerEnv: list(
    "Training",
    [],
    "Environment variable that trainer processes get, beside those for paths, languages, Python, PyTorch, GPUs, Ray and Slurm. A* stands for all that begin with A, except keys. May be repeated.",
    { placeholder: "NAME" },
  ),
  trainerDtype: oneOf(
    "Training",
    ["bfloat16", "float32"],
    "bfloat16",
    "Type of the frozen weights in the torch trainer. Use the one that is served.",
  ),
  trainerDeterministic: flag(
    "Training",
    false,
    "The torch trainer gives the same bits for the same job on the same machine, more slowly, and takes all memory of its GPUs.",
  ),
  trainerStallTimeout: seconds(
    "Training",
    1800,
    "How long a gradient step of the torch trainer may take, loading included, before its job fails.",
  ),
  trainingThreads: integer(
    "Training",
    null,
    "CPU threads of a training job. Default: --threads, or all cores the process may use.",
    {
      min: 1,
      max: 1024,
    },
  ),
  trainingMemoryBytes: integer(
    "Training",
    2 * 2 ** 30,
    "Memory for the activations of a training job. Sequences that do not fit are left out.",
    { min: 2 ** 20 },
    { placeholder: "BYTES" },
  ),
  maxTrainingJobs: integer(
    "Training",
    2,
    "Most jobs, of different models, that run at the same time. Each has a process with its own copy of the weights.",
    { min: 1, max: 64 },
  ),
  maxOpenTrainingJobs: integer("Training", 10_000, "Most waiting and running jobs per workspace.", { min: 1 }),
  maxTrainingBodyBytes: integer(
    "Training",
    256 * 2 ** 20,
    "Largest body of a training request, uncompressed. Larger ones get 413.",
    { min: 1024 },
    { placeholder: "BYTES" },
  ),
  maxSteps: integer("Training", 1000, "Steps kept per model. Beyond that, the oldest unused ones are deleted.", {
    min: 1,
  }),
  storage: storage(
    "Training",
    "Existing folder or S3 bucket (s3://BUCKET/PREFIX) for what training keeps. Servers that share a --database need the same one; engines of --engine-url must see it at the same path. Default: inside --data.",
  ),
  storageCacheBytes: integer(
    "Training",
    20 * 2 ** 30,
    "Disk space for local copies of steps from an S3 bucket. The least recently used go first; those in use stay.",
    { min: 2 ** 20 },
    { placeholder: "BYTES" },
  ),
  jobLease: integer(
    "Training",
    30,
    "How long a job stays with a silent server before another takes it over. The same on all servers.",
    { min: 3, max: 3600 },
    { placeholder: "SECONDS" },
  ),
  stepGrace: integer(
    "Training",
    null,
    "How long the files of a deleted step stay. Default: 3600 with --engine-url or --database, otherwise until no request uses it.",
    { min: 0, max: 2_000_000 },
    { placeholder: "SECONDS" },
  ),
  maxStepBytes: integer(
    "Training",
    50 * 2 ** 30,
    "Disk space for the training of one workspace. What would exceed it gets 429.",
    { min: 2 ** 20 },
    { placeholder: "BYTES" },
  ),
  keepTrajectories: kept(
    "Training",
    "2Gi/30d",
    "How much of what jobs were trained on each workspace keeps: BYTES, DAYS (30d) or both, at most a quarter of --max-step-bytes. The oldest go first. 0 keeps none.",
  ),
  loraRank: integer("Training", 8, "Rank of new models' adapters. At most --max-lora-rank.", { min: 1, max: 512 }),
  loraAlpha: integer("Training", 16, "Alpha of new models' adapters. They are scaled by alpha / rank.", { min: 1 }),
} satisfies Record<string, Option<unknown>>;
