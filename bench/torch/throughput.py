"""Tokens per second of the torch trainer and of an honest Hugging Face + PEFT loop, on the same tokens and loss.

    PYTHONPATH=trainer python bench/torch/throughput.py --shapes 0.5b,1.7b,4b,8b

Weights are random, in the shapes of known models. The loop is bf16 with autocast and SDPA, without recomputation, at the
micro-batch size that is fastest for it. Prints one JSON object per measurement; `tokens` counts submitted tokens, so
shared prompts count for every sequence. Needs a GPU and PEFT.
"""

import argparse
import gc
import json
import os
import random
import sys
import tempfile
import time

import torch
from peft import LoraConfig, get_peft_model
from torch.nn import functional as F
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen3Config

from flywheel_trainer.adapter import LINEARS, AdamState, Adapter, flatten, save_step
from flywheel_trainer.attention import NAME
from flywheel_trainer.model import TrainableModel
from flywheel_trainer.task import Hooks, World, run_task

RANK = 16
COMMON = {"vocab_size": 151_936, "max_position_embeddings": 32_768, "rope_theta": 1e6}
SHAPES = {
    "0.5b": Qwen2Config(hidden_size=896, num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2,
                        intermediate_size=4864, tie_word_embeddings=True, **COMMON),
    "1.7b": Qwen3Config(hidden_size=2048, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8,
                        head_dim=128, intermediate_size=6144, tie_word_embeddings=True, **COMMON),
    "4b": Qwen3Config(hidden_size=2560, num_hidden_layers=36, num_attention_heads=32, num_key_value_heads=8,
                      head_dim=128, intermediate_size=9728, tie_word_embeddings=True, **COMMON),
    "8b": Qwen3Config(hidden_size=4096, num_hidden_layers=36, num_attention_heads=32, num_key_value_heads=8,
                      head_dim=128, intermediate_size=12288, tie_word_embeddings=False, **COMMON),
}
LOSS = {
    "algorithm": "cispo", "epsilon": None, "epsilonHigh": None, "importanceSamplingLevel": "token",
    "maxImportanceWeight": None, "maskProbRatio": False, "artExactMasking": False, "tau": None,
    "truncatedImportanceSampling": None, "klPenaltyCoef": 0, "klPenaltySource": "current_learner",
}
ADAM = {"learningRate": 1e-5, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8, "weightDecay": 0.1, "maxGradNorm": 0.1}


def sequences(kind: str) -> list[dict]:
    """unshared: 32 of 512 to 1,024 tokens, all trained. shared: 4 groups of 8 replies of 256 to a prompt of 1,024."""
    rng = random.Random(7)
    word = lambda: rng.randrange(150_000)
    if kind == "unshared":
        rows = [([word()], [word() for _ in range(rng.randrange(511, 1024))], -1) for _ in range(32)]
    else:
        rows = []
        for group in range(4):
            prompt = [word() for _ in range(1024)]
            rows += [(prompt, [word() for _ in range(256)], group) for _ in range(8)]
    return [
        {
            "ids": prompt + reply,
            "mask": [0] * len(prompt) + [1] * len(reply),
            "oldLogprobs": [None] * len(prompt) + [-12.0] * len(reply),
            "advantage": rng.choice([-1.0, 1.0]),
            "weight": 1.0,
            "group": group,
        }
        for prompt, reply, group in rows
    ]


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def free() -> None:
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def fresh_model(config, attention: str):
    config._attn_implementation = attention
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation=attention)
    return model.eval()


def ours(config, kinds: list[str], steps: int) -> dict[str, tuple[float, int]]:
    model = TrainableModel(fresh_model(config, NAME), torch.device("cuda"))
    home = tempfile.mkdtemp()
    tensors = {}
    for layer in range(model.layers):
        for name, path in LINEARS.items():
            out, inside = model.linears[f"{layer}.{name}"].weight.shape
            tensors[f"{layer}.{name}.a"] = torch.randn(RANK, inside) / inside**0.5
            tensors[f"{layer}.{name}.b"] = torch.zeros(out, RANK)
    adapter = Adapter(RANK, 2 * RANK, False, tensors)
    save_step(f"{home}/start", adapter, AdamState.fresh(flatten(adapter, torch.device("cpu"))), "policy", "random")
    results = {}
    for kind in kinds:
        batch = f"{home}/{kind}.jsonl"
        with open(batch, "w") as file:
            file.write("\n".join(json.dumps(one) for one in sequences(kind)))
        count = len(sequences(kind))
        times = [time.perf_counter()]
        task = {
            "baseModel": "random", "weights": "bfloat16", "adapter": f"{home}/start", "optimizerState": None,
            "batch": batch, "steps": [{"from": 0, "to": count, "learningRate": 1e-5}] * (steps + 2),
            "objective": {"kind": "policy", "loss": LOSS, "precalculateLogprobs": False, "reference": None},
            "optimizer": ADAM, "output": f"{home}/{kind}", "activationBytes": 0,
        }

        def on_step(_: dict) -> None:
            torch.cuda.synchronize()
            times.append(time.perf_counter())
            say(f"ours {kind}: {times[-1] - times[-2]:.2f} s")
            if len(times) == 3:
                torch.cuda.reset_peak_memory_stats()

        run_task(task, Hooks(on_step, lambda: False, lambda *_: model), World())
        seconds = sorted(b - a for a, b in zip(times[2:], times[3:]))[steps // 2]
        results[kind] = (seconds, torch.cuda.max_memory_allocated())
    return results


def peft_loop(config, kinds: list[str], steps: int) -> dict[str, tuple[float, int, int]]:
    model = fresh_model(config, "sdpa")
    targets = [path.rpartition(".")[2] for path in LINEARS.values()]
    model = get_peft_model(model, LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules=targets)).train()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-5, fused=True)
    results = {}
    for kind in kinds:
        # of like lengths together, which saves padding
        data = sorted(sequences(kind), key=lambda one: len(one["ids"]))
        trained = sum(sum(one["mask"]) for one in data)

        def step(size: int) -> None:
            for start in range(0, len(data), size):
                part = data[start : start + size]
                longest = max(len(one["ids"]) for one in part)
                pad = lambda key: torch.tensor([one[key] + [0] * (longest - len(one[key])) for one in part]).cuda()
                ids, mask = pad("ids"), pad("mask")
                attention = torch.tensor([[1] * len(one["ids"]) + [0] * (longest - len(one["ids"])) for one in part]).cuda()
                with torch.autocast("cuda", torch.bfloat16):
                    # only the rows that are trained need logits
                    keep = int(mask.any(0).nonzero()[0]) - 1
                    logits = model(ids, attention_mask=attention, logits_to_keep=longest - keep, use_cache=False).logits
                    target = ids[:, keep + 1 :]
                    logits = logits[:, :-1].float()
                    logprobs = -F.cross_entropy(logits.transpose(1, 2), target, reduction="none")
                    old = torch.full_like(logprobs, -12.0)
                    ratio = (logprobs.detach() - old).exp().clamp(0, 5)
                    advantage = torch.tensor([[one["advantage"]] for one in part]).cuda()
                    loss = -(ratio * advantage * logprobs * mask[:, keep + 1 :]).sum() / trained
                loss.backward()
            torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 0.1)
            optimizer.step()
            optimizer.zero_grad()
            torch.cuda.synchronize()

        best = None
        for size in (4, 8, 16, 32):
            try:
                free()
                step(size)
                times = []
                for _ in range(steps):
                    began = time.perf_counter()
                    step(size)
                    times.append(time.perf_counter() - began)
                seconds = sorted(times)[len(times) // 2]
                say(f"PEFT {kind} by {size}: {seconds:.2f} s")
            except torch.OutOfMemoryError:
                optimizer.zero_grad()
                free()
                break
            if best is None or seconds < best[0]:
                best = (seconds, torch.cuda.max_memory_allocated(), size)
            elif seconds > 1.2 * best[0]:
                break
        results[kind] = best
    return results


def matrix_peak() -> float:
    """Measured bf16 FLOP/s of a large product."""
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    for _ in range(3):
        a @ a
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(20):
        a @ a
    torch.cuda.synchronize()
    return 20 * 2 * 8192**3 / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--shapes", default="0.5b,1.7b,4b,8b")
    parser.add_argument("--kinds", default="unshared,shared")
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    kinds = args.kinds.split(",")
    peak = matrix_peak()
    print(json.dumps({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "peak_tflops": peak / 1e12}), flush=True)
    for shape in args.shapes.split(","):
        free()
        mine = ours(SHAPES[shape], kinds, args.steps)
        free()
        theirs = peft_loop(SHAPES[shape], kinds, args.steps)
        for kind in kinds:
            data = sequences(kind)
            tokens = sum(len(one["ids"]) for one in data)
            line = {
                "shape": shape, "kind": kind, "tokens": tokens,
                "ours_tokens_per_s": round(tokens / mine[kind][0]), "ours_gib": round(mine[kind][1] / 2**30, 1),
                "peft_tokens_per_s": round(tokens / theirs[kind][0]), "peft_gib": round(theirs[kind][1] / 2**30, 1),
                "peft_micro_batch": theirs[kind][2], "ratio": round(theirs[kind][0] / mine[kind][0], 2),
            }
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main()
