"""Computes the 48 loss vectors. Prints the largest differences from their expected values as JSON.

`unequal` counts the values that differ when they are rounded as the vectors are. Argument: training-vectors.json.
"""

import json
import math
import sys

import torch

from flywheel_trainer.loss import LossInputs, policy_loss

# A masked token contributes nothing, except in these vectors: they record what ART does.
ART_MASKING = {"L22", "L25"}
# What the vectors are rounded to.
LOSS_DECIMALS, GRADIENT_DECIMALS = 9, 10


def config_of(vector: dict) -> dict:
    given = vector["cfg"]
    return {
        "algorithm": "ppo" if given.get("ppo") else "cispo",
        "epsilon": given.get("epsilon"),
        "epsilonHigh": given.get("epsilon_high"),
        "importanceSamplingLevel": given.get("importance_sampling_level", "token"),
        "maxImportanceWeight": given.get("max_negative_advantage_importance_sampling_weight"),
        "maskProbRatio": given.get("mask_prob_ratio") is True,
        "artExactMasking": vector["id"] in ART_MASKING,
        "tau": given.get("alt_k2_tau"),
        "truncatedImportanceSampling": given.get("truncated_importance_sampling"),
        "klPenaltyCoef": given.get("kl_penalty_coef", 0),
        "klPenaltySource": given.get("kl_penalty_source", "current_learner"),
    }


def tensor(values: list | None) -> torch.Tensor | None:
    if values is None:
        return None
    return torch.tensor([math.nan if value is None else value for value in values], dtype=torch.float64)


def compare(path: str) -> dict[str, float]:
    vectors = [vector for vector in json.load(open(path, encoding="utf8")) if vector["kind"] == "loss"]
    worst = {"count": len(vectors), "loss": 0.0, "gradient": 0.0, "unequal": 0}
    for vector in vectors:
        size = len(vector["new"])
        _, counts = torch.tensor(vector.get("seq") or [0] * size).unique_consecutive(return_counts=True)
        inputs = LossInputs(
            logprobs=tensor(vector["new"]),
            old_logprobs=tensor(vector["old"]),
            advantages=tensor(vector["adv"]),
            weights=tensor(vector.get("w") or [1.0] * size),
            counts=counts,
            sampler_logprobs=tensor(vector.get("orig")),
            reference_logprobs=tensor(vector.get("ref")),
            kl_mean=None,
            step_tokens=size,
        )
        found = policy_loss(inputs, config_of(vector))
        worst["loss"] = max(worst["loss"], abs(found.loss - vector["expected_loss"]))
        expected = vector["expected_dloss_dnew"]
        worst["gradient"] = max(worst["gradient"], float((found.gradient - tensor(expected)).abs().max()))
        worst["unequal"] += round(found.loss, LOSS_DECIMALS) != vector["expected_loss"]
        worst["unequal"] += sum(round(a, GRADIENT_DECIMALS) != b for a, b in zip(found.gradient.tolist(), expected, strict=True))
    return worst


if __name__ == "__main__":
    print(json.dumps(compare(sys.argv[1])))
