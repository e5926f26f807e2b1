"""Compares one family's fixture with its reference numbers. Prints the largest differences as JSON.

Arguments: a folder with config.json and model.safetensors, and the fixture's folder with adapter and references.
"""

import json
import sys

import torch
from safetensors.torch import load_file

from flywheel_trainer.adapter import LINEARS, AdamState, flatten, load_adapter, unflatten
from flywheel_trainer.batch import Memory, Sequence, plan_micro_batches
from flywheel_trainer.loss import LossInputs, policy_loss
from flywheel_trainer.model import TrainableModel

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

base, fixture = sys.argv[1:3]
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
reference = load_file(f"{fixture}/reference.safetensors")
model = TrainableModel.load(base, "float32", device)
adapter = load_adapter(fixture, model.layers)
params = flatten(adapter, device)
gradient = torch.zeros_like(params)
ids = reference["train.ids"].tolist()
memory = Memory(10**6, 10**6)


def forward(predicting: list[int]):
    sequence = Sequence(0, ids, predicting, torch.zeros(len(predicting)), 0.0, 1.0, -1)
    return model.forward(plan_micro_batches([sequence], memory)[0])


def tensor_of(prefix: str, name: str) -> torch.Tensor:
    layer, linear, factor = name.split(".")
    wanted = f"layers.{layer}.{LINEARS[linear]}.lora_{factor.upper()}"
    return next(value for key, value in reference.items() if key.startswith(prefix) and wanted in key).double()


def everything() -> dict[str, float]:
    return {name: float((value.cpu().double() - want).abs().max()) for name, (value, want) in compared.items()}


compared = {}
positions = list(range(len(ids) - 1))
targets = torch.tensor(ids[1:])[:, None]
model.set_adapter(params, adapter, adapter.scale)
want = reference["lora.logits"].double().log_softmax(-1)[:-1].gather(-1, targets)[:, 0]
compared["logprobs"] = (forward(positions).logprobs.detach(), want)
for index in range(3):
    ids = reference[f"ids.{index}"].tolist()
    if len(ids) < 2:
        continue
    model.set_adapter(params, adapter, 0.0)
    want = reference[f"logits.{index}"].double().log_softmax(-1)[:-1].gather(-1, torch.tensor(ids[1:])[:, None])[:, 0]
    compared[f"base.{index}"] = (forward(list(range(len(ids) - 1))).logprobs.detach(), want)
ids = reference["train.ids"].tolist()
trained = [i for i, bit in enumerate(reference["train.mask"].tolist()) if bit]
result = everything()
for name, config in CONFIGS.items():
    gradient.zero_()
    model.set_adapter(params, adapter, adapter.scale, gradient)
    out = forward(trained)
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
        want = tensor_of(f"grad.{name}.", parameter)
        worst = max(worst, float((value.cpu().double() - want).norm() / want.norm().clamp(min=1e-12)))
    result[f"gradient.{name}"] = worst
    if name == "cispo":
        after = params.clone()
        AdamState.fresh(params).update(after, gradient, ADAM, 1e-3)
        found = unflatten(after.cpu().double(), adapter)
        result["after"] = max(float((value - tensor_of("after.", key)).abs().max()) for key, value in found.items())
print(json.dumps(result))
