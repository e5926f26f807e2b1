"""Compares one family's fixture with its reference numbers. Prints the largest differences as JSON.

Arguments: a folder with config.json and model.safetensors, the fixture's folder with adapter and references, and the
type of the weights (float32 by default; the references are float32).
"""

import json
import sys

import torch
from safetensors.torch import load_file
from torch import Tensor

from flywheel_trainer.adapter import LINEARS, AdamState, flatten, load_adapter, unflatten
from flywheel_trainer.batch import Memory, Sequence, plan_micro_batches
from flywheel_trainer.loss import LossInputs, policy_loss
from flywheel_trainer.model import Pass, TrainableModel

LOSS = {
    "algorithm": "cispo",
    "epsilon": None,
    "epsilonHigh": None,
    "importanceSamplingLevel": "token",
    "maxImportanceWeight": None,
    "maskProbRatio": False,
    "artExactMasking": False,
    "tau": None,
    "truncatedImportanceSampling": None,
    "klPenaltyCoef": 0,
    "klPenaltySource": "current_learner",
}
CONFIGS = {
    "cispo": LOSS,
    "ppo": {**LOSS, "algorithm": "ppo"},
    "ppo_clip_higher_tau": {**LOSS, "algorithm": "ppo", "epsilon": 0.2, "epsilonHigh": 0.28, "tau": 0.1},
}
ADAM = {"maxGradNorm": 0.1, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8, "weightDecay": 0.1}
ALL_FIT = Memory(10**6, 10**6)


def compare(base: str, fixture: str, dtype: str = "float32") -> dict[str, float]:
    """Absolute differences; relative ones of each tensor's norm for gradients."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    reference = load_file(f"{fixture}/reference.safetensors")
    model = TrainableModel.load(base, dtype, device)
    adapter = load_adapter(fixture, model.layers)
    params = flatten(adapter, device)
    found: dict[str, float] = {}

    def logprobs(key: str, ids: list[int], logits: Tensor, scale: float) -> None:
        if len(ids) < 2:
            return
        model.set_adapter(params, adapter, scale)
        with torch.no_grad():
            out = forward(model, ids, list(range(len(ids) - 1))).logprobs.cpu().double()
        want = logits.double().log_softmax(-1)[:-1].gather(-1, torch.tensor(ids[1:])[:, None])[:, 0]
        found[key] = float((out - want).abs().max())

    trained_ids = reference["train.ids"].tolist()
    logprobs("logprobs", trained_ids, reference["lora.logits"], adapter.scale)
    for index in range(3):
        logprobs(f"base.{index}", reference[f"ids.{index}"].tolist(), reference[f"logits.{index}"], 0.0)
    trained = [i for i, bit in enumerate(reference["train.mask"].tolist()) if bit]
    gradient = torch.zeros_like(params)
    for name, config in CONFIGS.items():
        gradient.zero_()
        model.set_adapter(params, adapter, adapter.scale, gradient)
        out = forward(model, trained_ids, trained)
        inputs = LossInputs(
            logprobs=out.logprobs.detach().double().cpu(),
            old_logprobs=reference["train.old_logprobs"].double()[trained],
            advantages=reference["train.advantages"].double()[trained],
            weights=torch.ones(len(trained), dtype=torch.float64),
            counts=torch.tensor([len(trained)]),
            sampler_logprobs=None,
            reference_logprobs=None,
            step_tokens=len(trained),
        )
        out.logprobs.backward(policy_loss(inputs, config).gradient.to(out.logprobs))
        worst = 0.0
        for parameter, value in unflatten(gradient, adapter).items():
            want = tensor_of(reference, f"grad.{name}.", parameter)
            worst = max(worst, float((value.cpu().double() - want).norm() / want.norm().clamp(min=1e-12)))
        found[f"gradient.{name}"] = worst
        if name == "cispo":
            after = params.clone()
            AdamState.fresh(params).update(after, gradient, ADAM, 1e-3)
            values = unflatten(after.cpu().double(), adapter).items()
            found["after"] = max(float((value - tensor_of(reference, "after.", key)).abs().max()) for key, value in values)
    return found


def forward(model: TrainableModel, ids: list[int], predicting: list[int]) -> Pass:
    sequence = Sequence(0, ids, predicting, torch.zeros(len(predicting)), 0.0, 1.0, -1)
    return model.forward(plan_micro_batches([sequence], ALL_FIT)[0])


def tensor_of(reference: dict[str, Tensor], prefix: str, name: str) -> Tensor:
    layer, linear, factor = name.split(".")
    wanted = f"layers.{layer}.{LINEARS[linear]}.lora_{factor.upper()}"
    return next(value for key, value in reference.items() if key.startswith(prefix) and wanted in key).double()


if __name__ == "__main__":
    print(json.dumps(compare(*sys.argv[1:4])))
