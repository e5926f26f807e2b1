"""Runs a trainer task: loads the adapter, precomputes what the objective needs, takes the gradient steps, saves.

With several ranks every rank reads the whole batch and makes the same plan. Each takes its share of a gradient step;
one sum over the ranks gives the gradient of all. Rank 0 updates the parameters, reports and saves.
"""

import io
import math
import os
import resource
import time
from dataclasses import dataclass
from typing import Callable

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional as F

from .adapter import AdamState, Adapter, flatten, load_adapter, save_step, unflatten
from .batch import MicroBatch, Sequence, each_token, plan_micro_batches, read_batch, share_of_rank
from .loss import (
    LossInputs,
    StepTokens,
    clipped,
    kl_mean,
    kl_needs,
    policy_loss,
    sampler_difference,
    step_diagnostics,
    token_numbers,
)
from .model import TrainableModel

# Number of tokens that the trained weights are tried on.
FEW = 16


class Cancelled(Exception):
    pass


class TaskError(Exception):
    """The task failed. The message is for the user."""


@dataclass
class World:
    rank: int = 0
    size: int = 1
    group: dist.ProcessGroup | None = None

    def sum(self, tensor: Tensor) -> None:
        if self.size > 1:
            dist.all_reduce(tensor, group=self.group)

    def broadcast(self, tensor: Tensor) -> None:
        if self.size > 1:
            dist.broadcast(tensor, 0, group=self.group)

    def gather(self, value: object) -> list:
        """Every rank's value, of plain types, tensors and StepParts: torch's own way runs whatever the network brings."""
        if self.size == 1:
            return [value]
        file = io.BytesIO()
        torch.save(value, file)
        mine = torch.frombuffer(file.getbuffer(), dtype=torch.uint8)
        sizes = [torch.empty(1, dtype=torch.int64) for _ in range(self.size)]
        dist.all_gather(sizes, torch.tensor([len(mine)]), group=self.group)
        longest = max(int(size) for size in sizes)
        parts = [torch.empty(longest, dtype=torch.uint8) for _ in range(self.size)]
        dist.all_gather(parts, F.pad(mine, (0, longest - len(mine))), group=self.group)
        files = [io.BytesIO(part[: int(size)].numpy().tobytes()) for part, size in zip(parts, sizes, strict=True)]
        return [torch.load(file, weights_only=True) for file in files]


@dataclass
class Hooks:
    on_step: Callable[[dict], None]
    cancelled: Callable[[], bool]
    """Asked between micro-batches on one rank, between gradient steps on several."""
    model_for: Callable[[str, str], TrainableModel]


@dataclass
class StepPart:
    """What one rank computed for a gradient step, by index of its sequences."""

    loss: float
    tokens: dict[int, dict[str, Tensor]]
    """Values for the metrics, by the names of StepTokens."""
    numbers: dict[int, Tensor]
    """Rows of `token_numbers`, if the task keeps them."""


torch.serialization.add_safe_globals([StepPart])


def run_task(task: dict, hooks: Hooks, world: World) -> dict:
    started = time.perf_counter()
    model = hooks.model_for(task["baseModel"], task["weights"])
    adapter = load_adapter(task["adapter"], model.layers)
    runner = _Runner(task, hooks, world, model, adapter)
    return runner.run(started)


class _Runner:
    def __init__(self, task: dict, hooks: Hooks, world: World, model: TrainableModel, adapter: Adapter):
        self.task, self.hooks, self.world, self.model, self.adapter = task, hooks, world, model, adapter
        self.policy = task["objective"] if task["objective"]["kind"] == "policy" else None
        self.sequences = read_batch(task["batch"])
        self.params = flatten(adapter, model.device)
        self.memory = model.memory(task["activationBytes"])
        # tokens that went forward and backward on this rank
        self.rows = 0
        self.keeps_numbers = task.get("tokenNumbers") is not None

    def run(self, started: float) -> dict:
        task, params = self.task, self.params
        self._precompute()
        state = AdamState.load(task["optimizerState"], self.adapter, params, task["objective"]["kind"])
        gradient = torch.zeros_like(params)
        for index, plan in enumerate(task["steps"]):
            gradient.zero_()
            self.model.set_adapter(params, self.adapter, self.adapter.scale, gradient)
            metrics, numbers = self._step(self.sequences[plan["from"] : plan["to"]], first=index == 0)
            self.world.sum(gradient)
            norm = state.update(params, gradient, task["optimizer"], plan["learningRate"])
            self.world.broadcast(params)
            metrics |= {"grad_norm": norm, "learning_rate": plan["learningRate"], "gradient_step": index + 1}
            self._check_step(metrics, index)
            if self.world.rank == 0:
                if numbers is not None:
                    _write(task["tokenNumbers"], numbers, first=index == 0)
                self.hooks.on_step(metrics)
        return self._finish(state, started)

    def _finish(self, state: AdamState, started: float) -> dict:
        rows = sum(self.world.gather(self.rows))
        self.model.set_adapter(self.params, self.adapter, self.adapter.scale)
        if not self.model.finite_after_training(self.sequences[0].ids[:FEW]):
            cause = self._learning_rate(len(self.task["steps"]) - 1)
            raise TaskError(
                f"the outputs of the model are not finite after the last gradient step; {cause} may be too large"
            )
        if self.world.rank == 0:
            trained = unflatten(self.params.cpu(), self.adapter)
            tensors = {name: tensor.clone() for name, tensor in trained.items()}
            adapter = Adapter(self.adapter.rank, self.adapter.alpha, self.adapter.rank_stabilised, tensors)
            base_name = os.path.basename(os.path.normpath(self.task["baseModel"]))
            save_step(self.task["output"], adapter, state, self.task["objective"]["kind"], base_name)
        gpus = self.world.size if self.model.device.type == "cuda" else 0
        seconds = time.perf_counter() - started
        return {"tokens": rows, "seconds": seconds, "peakBytes": self._peak_bytes(), "gpus": gpus}

    def _peak_bytes(self) -> int:
        if self.model.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.model.device)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def _precompute(self) -> None:
        """Log-probabilities of the starting weights and of the reference policy, if the objective needs them."""
        if self.policy is None:
            return
        scale = self.adapter.scale
        if self.policy["precalculateLogprobs"]:
            self.model.set_adapter(self.params, self.adapter, scale)
            self._store("precalculated")
        reference = self.policy["reference"]
        if reference is None:
            return
        if reference == "base":
            self.model.set_adapter(self.params, self.adapter, 0.0)
        else:
            other = load_adapter(reference, self.model.layers)
            self.model.set_adapter(flatten(other, self.model.device), other, other.scale)
        self._store("reference")

    def _store(self, key: str) -> None:
        for index, values in self._logprobs(self.sequences).items():
            setattr(self.sequences[index], key, values)

    @torch.no_grad()
    def _logprobs(self, sequences: list[Sequence]) -> dict[int, Tensor]:
        """Of every trained token under the model's current parameters, by index of the sequence, on every rank."""
        mine = share_of_rank(sequences, self.world.rank, self.world.size)
        found: dict[int, Tensor] = {}
        for batch in self._even(plan_micro_batches(mine, self.memory)):
            self._between()
            if batch is None:
                self.model.empty_pass()
                continue
            logprobs = self.model.forward(batch).logprobs.double().cpu()
            for sequence, values in zip(batch.rows.sequences, logprobs.split(_counts(batch.rows.sequences))):
                found[sequence.index] = values
        return {index: values for part in self.world.gather(found) for index, values in part.items()}

    def _kl_mean(self, sequences: list[Sequence]) -> float | None:
        """What the KL penalty is centred on. None: there is none, or one micro-batch has the whole step."""
        if self.policy is None or sequences[0].reference is None:
            return None
        if self.world.size == 1 and len(plan_micro_batches(sequences, self.memory)) == 1:
            return None
        old = each_token(sequences, lambda s: s.sampler if s.precalculated is None else s.precalculated)
        reference = each_token(sequences, lambda s: s.reference)
        needs = kl_needs(old, reference, self.policy["loss"])
        if needs == "nothing":
            return None
        logprobs = old
        if needs == "current":
            found = self._logprobs(sequences)
            logprobs = each_token(sequences, lambda s: found[s.index])
        return kl_mean(logprobs, old, reference, self.policy["loss"])

    def _step(self, sequences: list[Sequence], first: bool) -> tuple[dict, bytes | None]:
        """The metrics, and the numbers of every trained token in the order of the batch if the task keeps them."""
        trained = sum(len(sequence.predicting) for sequence in sequences)
        centre = self._kl_mean(sequences)
        part = self._pass_over(share_of_rank(sequences, self.world.rank, self.world.size), trained, centre)
        parts = self.world.gather(part)
        if any(part is None for part in parts):
            raise Cancelled
        loss = sum(part.loss for part in parts)
        counts = {
            "num_trainable_tokens": trained,
            "num_tokens": sum(len(sequence.ids) for sequence in sequences),
            "num_datums": len(sequences),
        }
        numbers = self._numbers(sequences, parts) if self.keeps_numbers else None
        if self.policy is None:
            return {"loss": loss, **counts}, numbers
        found = {index: tokens for part in parts for index, tokens in part.tokens.items()}

        def joined(name: str) -> Tensor:
            values = [found[sequence.index][name] for sequence in sequences if name in found[sequence.index]]
            return torch.cat(values) if values else torch.zeros(0, dtype=torch.float64)

        tokens = StepTokens(*(joined(name) for name in StepTokens.__dataclass_fields__))
        diagnostics = step_diagnostics(tokens, self.policy["loss"])
        if first:
            diagnostics |= sampler_difference(tokens.logprobs, each_token(sequences, lambda s: s.sampler))
        return {"loss": loss, "policy_loss": loss, **diagnostics, **counts}, numbers

    def _numbers(self, sequences: list[Sequence], parts: list[StepPart]) -> bytes:
        found = {index: rows for part in parts for index, rows in part.numbers.items()}
        return b"".join(found[sequence.index].numpy().astype("<f4").tobytes() for sequence in sequences)

    def _pass_over(self, sequences: list[Sequence], step_tokens: int, centre: float | None) -> StepPart | None:
        """Forward and backward over this rank's sequences. None when the task was cancelled and others must know."""
        part = StepPart(0.0, {}, {})
        batches = self._even(plan_micro_batches(sequences, self.memory))
        # ranks that hold parts of the model must stop at the same place
        if self.model.sharded and any(self.world.gather(self.hooks.cancelled())):
            return None
        for batch in batches:
            if self.hooks.cancelled() and not self.model.sharded:
                return None
            if batch is None:
                self.model.empty_pass()
                continue
            members = batch.rows.sequences
            result = self.model.forward(batch)
            self.rows += len(batch.rows.ids)
            logprobs, entropies = result.logprobs.detach().double().cpu(), result.entropies.double().cpu()
            fields = {"new_logprob": logprobs, "entropy": entropies}
            if self.policy is None:
                gradient = torch.full_like(logprobs, -1 / step_tokens)
                part.loss += -float(logprobs.sum()) / step_tokens
            else:
                inputs = self._loss_inputs(members, logprobs, step_tokens, centre)
                loss = policy_loss(inputs, self.policy["loss"])
                gradient = loss.gradient
                part.loss += loss.loss
                named = {
                    "logprobs": logprobs,
                    "old": loss.old,
                    "ratios": loss.ratio,
                    "advantages": inputs.advantages,
                    "entropies": entropies,
                }
                fields |= {"ratio": loss.ratio, "clipped": clipped(loss.ratio, self.policy["loss"])}
                fields |= {"advantage": loss.advantage, "weight": inputs.weights}
                if loss.kl_to_reference is not None:
                    named["kl_to_reference"] = fields["reference_kl"] = loss.kl_to_reference
                split = {name: values.split(_counts(members)) for name, values in named.items()}
                for i, member in enumerate(members):
                    part.tokens[member.index] = {name: values[i] for name, values in split.items()}
            if self.keeps_numbers:
                rows = token_numbers({**fields, "gradient": gradient}).split(_counts(members))
                part.numbers |= {member.index: own for member, own in zip(members, rows)}
            if len(logprobs) > 0:
                result.logprobs.backward(gradient.to(result.logprobs))
        return part

    def _loss_inputs(
        self, members: list[Sequence], logprobs: Tensor, step_tokens: int, centre: float | None
    ) -> LossInputs:
        def constant(value: Callable[[Sequence], float]) -> Tensor:
            return each_token(members, lambda s: torch.full((len(s.predicting),), value(s), dtype=torch.float64))

        recomputed, compared = members[0].precalculated is not None, members[0].reference is not None
        return LossInputs(
            logprobs=logprobs,
            old_logprobs=each_token(members, lambda s: s.precalculated if recomputed else s.sampler),
            advantages=constant(lambda s: s.advantage),
            weights=constant(lambda s: s.weight),
            counts=torch.tensor(_counts(members)),
            sampler_logprobs=each_token(members, lambda s: s.sampler) if recomputed else None,
            reference_logprobs=each_token(members, lambda s: s.reference) if compared else None,
            kl_mean=centre,
            step_tokens=step_tokens,
        )

    def _even(self, batches: list[MicroBatch]) -> list[MicroBatch | None]:
        """As many on every rank, if all must run the same number of passes. None: an empty one."""
        if not self.model.sharded:
            return batches
        return batches + [None] * (max(self.world.gather(len(batches))) - len(batches))

    def _between(self) -> None:
        if self.world.size == 1 and self.hooks.cancelled():
            raise Cancelled

    def _check_step(self, metrics: dict, step: int) -> None:
        if all(math.isfinite(value) for value in metrics.values()):
            return
        causes = [self._learning_rate(step - 1)] if step > 0 else []
        if self.policy is not None:
            loss = self.policy["loss"]
            if loss["tau"] is not None:
                causes.append(f"alt_k2_tau ({loss['tau']:g})")
            if loss["klPenaltyCoef"] > 0:
                causes.append(f"kl_penalty_coef ({loss['klPenaltyCoef']:g})")
        advice = f"{' or '.join(causes)} may be too large" if causes else "the step it starts from may be damaged"
        raise TaskError(f"the loss or its gradient is not finite in gradient step {step + 1}; {advice}")

    def _learning_rate(self, step: int) -> str:
        rate, decay = self.task["steps"][step]["learningRate"], self.task["optimizer"]["weightDecay"]
        cause = f"the learning rate ({rate:g})"
        return f"{cause} or weight_decay ({decay:g})" if rate * decay > 1 else cause


def _write(path: str, rows: bytes, first: bool) -> None:
    """The first rows replace what an attempt that failed has left."""
    flags = os.O_CREAT | os.O_WRONLY | (os.O_TRUNC if first else os.O_APPEND)
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(rows)


def _counts(sequences: list[Sequence]) -> list[int]:
    return [len(sequence.predicting) for sequence in sequences]
