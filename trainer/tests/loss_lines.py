"""Computes the loss of every line of a file, to compare with the server's own. One JSON object in, one out."""

import json
import math
import sys

import torch

from flywheel_trainer.loss import LossInputs, policy_loss


def tensor(values: list) -> torch.Tensor:
    return torch.tensor([math.nan if value is None else value for value in values], dtype=torch.float64)


for line in open(sys.argv[1], encoding="utf8"):
    case = json.loads(line)
    inputs = LossInputs(
        logprobs=tensor(case["logprobs"]),
        old_logprobs=tensor(case["old"]),
        advantages=tensor(case["advantages"]),
        weights=tensor(case["weights"]),
        counts=torch.tensor(case["counts"]),
        sampler_logprobs=None if case["sampler"] is None else tensor(case["sampler"]),
        reference_logprobs=None if case["reference"] is None else tensor(case["reference"]),
        kl_mean=None,
        step_tokens=case["stepTokens"],
    )
    result = policy_loss(inputs, case["config"])
    print(json.dumps({"loss": result.loss, "gradient": result.gradient.tolist(), "ratio": result.ratio.tolist()}))
