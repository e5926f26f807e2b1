"""Tasks for the torch trainer as the server would write them: sequences, a starting adapter, a loss, an optimizer."""

import json
import os
import random

import torch

from flywheel_trainer.adapter import LINEARS, AdamState, Adapter, flatten, save_step

RANK = 16
LOSS = {
    "algorithm": "cispo", "epsilon": None, "epsilonHigh": None, "importanceSamplingLevel": "token",
    "maxImportanceWeight": None, "maskProbRatio": False, "artExactMasking": False, "tau": None,
    "truncatedImportanceSampling": None, "klPenaltyCoef": 0, "klPenaltySource": "current_learner",
}
ADAM = {"learningRate": 1e-5, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8, "weightDecay": 0.1, "maxGradNorm": 0.1}


def random_sequences(kind: str, count: int, vocabulary: int, scale: float = 1.0, trained: bool = True) -> list[dict]:
    """Random tokens. unshared: `count` of 512 to 1,024 tokens, all trained. shared: groups of 8 replies of 256 to a
    prompt of 1,024. `scale` multiplies the lengths."""
    rng = random.Random(7)
    word = lambda: rng.randrange(vocabulary)
    words = lambda length: [word() for _ in range(max(2, int(length * scale)))]
    if kind == "unshared":
        rows = [([word()], words(rng.randrange(511, 1024)), -1) for _ in range(count)]
    else:
        rows = []
        for group in range(count // 8):
            prompt = words(1024)
            rows += [(prompt, words(256), group) for _ in range(8)]
    return [sequence(prompt, reply, group, rng.choice([-1.0, 1.0])) for prompt, reply, group in rows]


def sequence(prompt: list[int], reply: list[int], group: int, advantage: float, old: float = -12.0) -> dict:
    return {
        "ids": prompt + reply,
        "mask": [0] * len(prompt) + [1] * len(reply),
        "oldLogprobs": [None] * len(prompt) + [old] * len(reply),
        "advantage": advantage,
        "weight": 1.0,
        "group": group,
    }


def write_adapter(folder: str, config) -> str:
    """A starting adapter of rank 16 whose factors are all random, so that every gradient counts."""
    hidden, wide = config.hidden_size, config.intermediate_size
    heads, groups = config.num_attention_heads, config.num_key_value_heads
    head_dim = getattr(config, "head_dim", None) or hidden // heads
    inside = {"o": heads * head_dim, "down": wide}
    outside = {"q": heads * head_dim, "k": groups * head_dim, "v": groups * head_dim, "gate": wide, "up": wide}
    generator = torch.Generator().manual_seed(1)
    tensors = {}
    for layer in range(config.num_hidden_layers):
        for name in LINEARS:
            rows, columns = outside.get(name, hidden), inside.get(name, hidden)
            tensors[f"{layer}.{name}.a"] = torch.randn(RANK, columns, generator=generator) / columns**0.5
            tensors[f"{layer}.{name}.b"] = torch.randn(rows, RANK, generator=generator) * 1e-3
    adapter = Adapter(RANK, 2 * RANK, False, tensors)
    save_step(folder, adapter, AdamState.fresh(flatten(adapter, torch.device("cpu"))), "policy", "bench")
    return folder


def task(home: str, base: str, dtype: str, data: list[dict], steps: int, per_step: int | None = None) -> dict:
    """`per_step`: sequences of one gradient step; all by default. Steps go round the batch."""
    batch = os.path.join(home, f"batch-{len(os.listdir(home))}.jsonl")
    with open(batch, "w", encoding="utf8") as file:
        file.write("\n".join(json.dumps(one) for one in data))
    size = per_step or len(data)
    starts = [(index * size) % len(data) for index in range(steps)]
    return {
        "baseModel": base, "weights": dtype, "adapter": os.path.join(home, "start"), "optimizerState": None, "batch": batch,
        "steps": [{"from": start, "to": min(len(data), start + size), "learningRate": 1e-5} for start in starts],
        "objective": {"kind": "policy", "loss": LOSS, "precalculateLogprobs": False, "reference": None},
        "optimizer": ADAM, "output": os.path.join(home, f"step-{len(os.listdir(home))}"), "activationBytes": 4 * 2**30,
    }
