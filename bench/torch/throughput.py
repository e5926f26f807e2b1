"""Tokens per second of the torch trainer and of an honest Hugging Face + PEFT loop, on the same tokens and loss.

    PYTHONPATH=trainer python bench/torch/throughput.py --shapes 1.7b,8b,0.5b,4b --seconds 500

Weights are random, in the shapes of known models. The loop is bfloat16 with SDPA and without recomputation, at its best
settings: with autocast over float32 factors (PEFT's default) or with bfloat16 factors, optionally with compiled layers,
and at the micro-batch size that is fastest. Prints one JSON object per measurement; `tokens` counts submitted tokens,
so shared prompts count for every sequence. `of_peak` is the arithmetic of the frozen weights that had to be done per
second, as a share of a measured matrix product. Needs a GPU and PEFT.
"""

import argparse
import gc
import json
import os
import sys
import tempfile
import time

import torch
from peft import LoraConfig, get_peft_model
from torch.nn import functional as F
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen3Config

from flywheel_trainer.adapter import LINEARS
from flywheel_trainer.attention import NAME
from flywheel_trainer.model import TrainableModel
from flywheel_trainer.task import Hooks, World, run_task
from tasks import RANK, random_sequences, task, write_adapter

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
    "tiny": Qwen3Config(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
                        intermediate_size=128, tie_word_embeddings=True, **{**COMMON, "vocab_size": 512}),
}
CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
BEGAN = time.monotonic()


def say(line: str) -> None:
    print(f"[{time.monotonic() - BEGAN:.0f} s] {line}", file=sys.stderr, flush=True)


def finish() -> None:
    if CUDA:
        torch.cuda.synchronize()


def free() -> None:
    gc.collect()
    if CUDA:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def peak_gib() -> float:
    return round(torch.cuda.max_memory_allocated() / 2**30, 1) if CUDA else 0.0


def fresh_model(config, attention: str):
    config._attn_implementation = attention
    torch.manual_seed(0)
    with torch.device(DEVICE):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation=attention)
    return model.eval()


class Ours:
    def __init__(self, config):
        free()
        self.config = config
        self.model = TrainableModel(fresh_model(config, NAME), DEVICE)
        self.home = tempfile.mkdtemp()
        write_adapter(f"{self.home}/start", config)

    def run(self, data: list[dict], steps: int, per_step: int | None, warm: int) -> dict:
        """Seconds of a gradient step, the median after `warm` steps, and rows per step."""
        wanted = task(self.home, "random", "bfloat16", data, steps + warm, per_step)
        times = [time.perf_counter()]

        def on_step(_: dict) -> None:
            finish()
            times.append(time.perf_counter())
            if len(times) == warm + 1 and CUDA:
                torch.cuda.reset_peak_memory_stats()

        before = self.model.rows_done
        run_task(wanted, Hooks(on_step, lambda: False, lambda *_: self.model), World())
        each = [b - a for a, b in zip(times, times[1:])]
        say(f"ours: {' '.join(f'{seconds:.2f}' for seconds in each[:12])}")
        rows = (self.model.rows_done - before) / (steps + warm)
        timed = each[warm:]
        return {"seconds": sorted(timed)[len(timed) // 2], "total": sum(timed), "rows": rows, "gib": peak_gib(), "first_s": round(each[0], 1)}


def flops(config, rows: float, trained: int) -> float:
    """Of one step: every frozen weight forward and backward, the head thrice (its logits are computed again)."""
    hidden, wide = config.hidden_size, config.intermediate_size
    heads, groups = config.num_attention_heads, config.num_key_value_heads
    size = getattr(config, "head_dim", None) or hidden // heads
    body = config.num_hidden_layers * (hidden * size * (2 * heads + 2 * groups) + 3 * hidden * wide)
    return 4 * body * rows + 6 * config.vocab_size * hidden * trained


class Peft:
    def __init__(self, config, setting: str):
        """`setting`: autocast, bf16 or compile."""
        free()
        self.setting = setting
        targets = [path.rpartition(".")[2] for path in LINEARS.values()]
        lora = LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules=targets)
        self.model = get_peft_model(fresh_model(config, "sdpa"), lora, autocast_adapter_dtype=setting == "autocast").train()
        if setting == "compile":
            for layer in self.model.base_model.model.model.layers:
                layer.compile(dynamic=False)
        self.trained = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(self.trained, lr=1e-5, fused=CUDA)

    def step(self, data: list[dict], size: int, longest: int | None) -> None:
        total = sum(sum(one["mask"]) for one in data)
        for start in range(0, len(data), size):
            part = data[start : start + size]
            width = longest or max(len(one["ids"]) for one in part)
            pad = lambda key: torch.tensor([one[key] + [0] * (width - len(one[key])) for one in part]).to(DEVICE)
            ids, mask = pad("ids"), pad("mask")
            attention = torch.tensor([[1] * len(one["ids"]) + [0] * (width - len(one["ids"])) for one in part]).to(DEVICE)
            with torch.autocast(DEVICE.type, torch.bfloat16, enabled=self.setting == "autocast"):
                # only the rows that are trained need logits
                keep = int(mask.any(0).nonzero()[0]) - 1
                logits = self.model(ids, attention_mask=attention, logits_to_keep=width - keep, use_cache=False).logits
                logits = logits[:, :-1].float()
                logprobs = -F.cross_entropy(logits.transpose(1, 2), ids[:, keep + 1 :], reduction="none")
                ratio = (logprobs.detach() + 12.0).exp().clamp(0, 5)
                advantage = torch.tensor([[one["advantage"]] for one in part]).to(DEVICE)
                loss = -(ratio * advantage * logprobs * mask[:, keep + 1 :]).sum() / total
            loss.backward()
        torch.nn.utils.clip_grad_norm_(self.trained, 0.1)
        self.optimizer.step()
        self.optimizer.zero_grad()
        finish()

    def run(self, data: list[dict], sizes: list[int], steps: int) -> dict | None:
        # of like lengths together, which saves padding; compiled layers want one length
        data = sorted(data, key=lambda one: len(one["ids"]))
        longest = len(data[-1]["ids"]) if self.setting == "compile" else None
        best = None
        for size in sizes:
            try:
                free()
                began = time.perf_counter()
                self.step(data, size, longest)
                first = time.perf_counter() - began
                times = []
                for _ in range(steps):
                    began = time.perf_counter()
                    self.step(data, size, longest)
                    times.append(time.perf_counter() - began)
                seconds = sorted(times)[len(times) // 2]
            except torch.OutOfMemoryError:
                say(f"PEFT {self.setting} by {size}: out of memory")
                self.optimizer.zero_grad()
                break
            say(f"PEFT {self.setting} by {size}: {seconds:.2f} s, first {first:.1f} s, {peak_gib()} GiB")
            if best is None or seconds < best["seconds"]:
                best = {"seconds": seconds, "gib": peak_gib(), "micro_batch": size, "setting": self.setting}
            elif seconds > 1.1 * best["seconds"]:
                break
        return best


def matrix_peak() -> float:
    """Measured bf16 FLOP/s of a large product."""
    size = 8192 if CUDA else 256
    a = torch.randn(size, size, device=DEVICE, dtype=torch.bfloat16)
    for _ in range(3):
        a @ a
    finish()
    began = time.perf_counter()
    for _ in range(20):
        a @ a
    finish()
    return 20 * 2 * size**3 / (time.perf_counter() - began)


def compare(shape: str, args, peak: float) -> None:
    config = SHAPES[shape]
    vocabulary = config.vocab_size - 1
    kinds = {kind: random_sequences(kind, 32, vocabulary, args.scale) for kind in args.kinds.split(",")}
    tokens = {kind: sum(len(one["ids"]) for one in data) for kind, data in kinds.items()}
    trained = {kind: sum(sum(one["mask"]) for one in data) for kind, data in kinds.items()}
    ours, mine = Ours(config), {}
    for kind, data in kinds.items():
        mine[kind] = ours.run(data, args.steps, None, warm=2)
        share = flops(config, mine[kind]["rows"], trained[kind]) / mine[kind]["seconds"] / peak
        line = {"shape": shape, "kind": kind, "who": "ours", "tokens": tokens[kind], "rows": round(mine[kind]["rows"]),
                "tokens_per_s": round(tokens[kind] / mine[kind]["seconds"]), "gib": mine[kind]["gib"],
                "of_peak": round(share, 3), "first_step_s": mine[kind]["first_s"]}
        print(json.dumps(line), flush=True)
    del ours
    best: dict[str, dict] = {}
    sizes = [int(text) for text in args.sizes.split(",")]
    for setting in filter(None, args.settings.split(",")):
        if time.monotonic() - BEGAN > args.seconds:
            break
        loop = Peft(config, setting)
        for kind, data in kinds.items():
            # the other settings need about as much memory, so the best size is known
            tried = sizes if kind not in best else [best[kind]["micro_batch"]]
            found = loop.run(data, tried, max(1, args.steps - 1))
            if found and (kind not in best or found["seconds"] < best[kind]["seconds"]):
                best[kind] = found
        del loop
    for kind, found in best.items():
        line = {"shape": shape, "kind": kind, "who": "PEFT", "tokens_per_s": round(tokens[kind] / found["seconds"]),
                "gib": found["gib"], "micro_batch": found["micro_batch"], "setting": found["setting"],
                "ratio": round(found["seconds"] / mine[kind]["seconds"], 2)}
        print(json.dumps(line), flush=True)


def accumulation(shape: str, args) -> None:
    """64 sequences as 64 gradient steps of one, and as one of 64."""
    ours = Ours(SHAPES[shape])
    data = random_sequences("unshared", 64, SHAPES[shape].vocab_size - 1, args.scale)
    tokens = sum(len(one["ids"]) for one in data)
    for per_step in (1, 64):
        steps = 64 // per_step if per_step < 64 else args.steps
        found = ours.run(data, steps, per_step, warm=64 if per_step == 1 else 2)
        rate = tokens / (found["total"] if per_step == 1 else found["seconds"])
        line = {"shape": shape, "kind": "64 sequences", "sequences_per_step": per_step, "tokens_per_s": round(rate), "gib": found["gib"]}
        print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--shapes", default="1.7b,8b,0.5b,4b")
    parser.add_argument("--kinds", default="unshared,shared")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--settings", default="autocast,bf16", help="of the PEFT loop: autocast, bf16, compile; empty: ours alone")
    parser.add_argument("--sizes", default="4,8,16,32", help="micro-batches of the PEFT loop")
    parser.add_argument("--accumulation", default="", help="shapes to compare 1 and 64 sequences per gradient step for")
    parser.add_argument("--scale", type=float, default=1.0, help="of the sequences' lengths")
    parser.add_argument("--seconds", type=float, default=500, help="nothing starts after this long")
    args = parser.parse_args()
    peak = matrix_peak()
    gpu = torch.cuda.get_device_name() if CUDA else "cpu"
    print(json.dumps({"gpu": gpu, "torch": torch.__version__, "peak_tflops": round(peak / 1e12, 1)}), flush=True)
    for run, shapes in ((lambda s: compare(s, args, peak), args.shapes), (lambda s: accumulation(s, args), args.accumulation)):
        for shape in filter(None, shapes.split(",")):
            if time.monotonic() - BEGAN > args.seconds:
                print(json.dumps({"shape": shape, "skipped": "no time left"}), flush=True)
                continue
            try:
                run(shape)
            except Exception as error:  # the other shapes still count
                print(json.dumps({"shape": shape, "error": f"{type(error).__name__}: {error}"[:400]}), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main()
