// Converts the requests of runs to what training understands, and refuses what it cannot do.

import type { Static } from "typebox";
import type { NamedLoss } from "../../../training/gradient/named-loss.ts";
import type { CheckpointId, Command, PassCommand } from "../../../training/runs/operation.ts";
import type { NewRun } from "../../../training/runs/runs.ts";
import type { Loc, Violations } from "../../request/violations.ts";
import { invalid } from "../validation.ts";
import type { LoadStateBody, OptimStepBody, PassBody, PublishBody, ResolveBody } from "./run.schema.ts";

const MODULES = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];

/** Names for several maps: PEFT's, those of checkpoints with fused maps, and Megatron's. */
const JOINED: Readonly<Record<string, readonly string[]>> = {
  "all-linear": MODULES,
  linear_qkv: ["q_proj", "k_proj", "v_proj"],
  linear_proj: ["o_proj"],
  linear_fc1: ["gate_proj", "up_proj"],
  linear_fc2: ["down_proj"],
  qkv_proj: ["q_proj", "k_proj", "v_proj"],
  gate_up_proj: ["gate_proj", "up_proj"],
  c_attn: ["q_proj", "k_proj", "v_proj"],
  c_fc: ["gate_proj", "up_proj"],
  c_proj: ["o_proj", "down_proj"],
};

const CHECKPOINT_ID = /^([0-9a-fA-F-]{36})@(\d{1,9})$/;

const LOSSES = ["cross_entropy", "importance_sampling", "cispo"];

export function runFrom(body: Static<typeof ResolveBody>, owner: string, entity: string): NewRun {
  const { base_model, lora_rank, lora_target_modules } = body.spec;
  const named = new Set(lora_target_modules.flatMap((name) => JOINED[name] ?? [name]));
  if (named.size !== MODULES.length || !MODULES.every((name) => named.has(name))) {
    const message = `Value error, this server trains all linear maps; send ${MODULES.join(", ")}`;
    throw invalid(["body", "spec", "lora_target_modules"], "value_error", message);
  }
  const seed = body.spec.seed ?? null;
  // in a fixed order, so that equal specs are equal texts
  const spec = { base_model, dtype: body.spec.dtype ?? "bfloat16", lora_rank, lora_target_modules, seed };
  const from = body.initial_state;
  return {
    ...{ owner, entity, requestId: body.request_id, name: body.run_name ?? null, seed },
    ...{ baseModel: base_model, loraRank: lora_rank, spec: JSON.stringify(spec) },
    from: from
      ? {
          ...checkpointFrom(from.source, ["body", "initial_state", "source"]),
          withOptimizer: from.restore_optimizer ?? false,
        }
      : null,
  };
}

export function optimStepFrom({ optimizer }: Static<typeof OptimStepBody>): Command {
  const clip = optimizer.grad_clip_norm ?? 0.1;
  return {
    kind: "optim_step",
    optimizer: {
      learningRate: optimizer.learning_rate,
      beta1: optimizer.beta1 ?? 0.9,
      beta2: optimizer.beta2 ?? 0.99,
      epsilon: optimizer.eps ?? 1e-13,
      weightDecay: optimizer.weight_decay ?? 0.1,
      maxGradNorm: clip === 0 ? Number.MAX_VALUE : clip,
    },
  };
}

export function publicationFrom({ publication }: Static<typeof PublishBody>): Command {
  return { kind: "save_weights_for_sampler", target: publication.target, alias: publication.model_alias };
}

export function loadStateFrom({ source, restore_optimizer }: Static<typeof LoadStateBody>): Command {
  const checkpoint = checkpointFrom(source, ["body", "source"]);
  return { kind: "load_state", source: checkpoint, withOptimizer: restore_optimizer ?? false };
}

type WirePass = Static<typeof PassBody>;

/** Returns undefined and adds to `issues` if the pass cannot be run here. */
export function passFrom(
  kind: PassCommand["kind"],
  body: WirePass,
  matrices: PassCommand["matrices"],
  issues: Violations,
): PassCommand | undefined {
  const refuse = (loc: Loc, reason: string) => issues.add(["body", ...loc], "value_error", `Value error, ${reason}`);
  if (body.batch.routes?.length) refuse(["batch", "routes"], "no model here has experts to route to");
  if (body.retain_packed_input) refuse(["retain_packed_input"], "packed inputs are not kept; send the batch again");
  const loss = lossFrom(body.loss);
  if (!loss) refuse(["loss", "name"], `use ${LOSSES.join(", ")}`);
  if (loss?.name === "cispo" && loss.clipLow > loss.clipHigh) {
    refuse(["loss", "clip_low_threshold"], "must not exceed clip_high_threshold");
  }
  if (!loss || issues.any) return undefined;
  return {
    ...{ kind, loss, matrices },
    wantsLogprobs: body.return_token_logprobs ?? true,
    wantsTokenIds: body.collect_packing_shapes ?? false,
  };
}

function lossFrom({ name, clip_low_threshold, clip_high_threshold }: WirePass["loss"]): NamedLoss | null {
  if (name === "cross_entropy" || name === "importance_sampling") return { name };
  if (name !== "cispo") return null;
  return { name, clipLow: clip_low_threshold ?? 0, clipHigh: clip_high_threshold ?? 4 };
}

function checkpointFrom(
  { kind, checkpoint_id }: { kind: string; checkpoint_id?: string | null },
  loc: Loc,
): CheckpointId {
  if (kind !== "service_checkpoint") {
    const message = "Value error, this server has no W&B artifacts; use a service_checkpoint, RUN_ID@VERSION";
    throw invalid([...loc, "kind"], "value_error", message);
  }
  const parts = CHECKPOINT_ID.exec(checkpoint_id ?? "");
  if (!parts) throw invalid([...loc, "checkpoint_id"], "value_error", "Value error, its form is RUN_ID@VERSION");
  return { modelId: parts[1]!.toLowerCase(), step: Number(parts[2]) };
}
