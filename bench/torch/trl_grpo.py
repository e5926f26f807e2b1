"""Tokens per second of TRL's GRPO trainer on ready-made replies, beside the torch trainer on the same ones.

    PYTHONPATH=trainer:FOLDER_WITH_TRL python bench/torch/trl_grpo.py --shapes 1.7b --seconds 120

TRL's own training loop, loss (cispo), gradient accumulation, clipping and optimizer run; only its generation is
replaced by given tokens. bfloat16 with autocast, SDPA, PEFT, no recomputation. Micro-batches of 4 to 16 are
tried, and the fastest counts. TRL imports packages for data that this needs nothing of; where they are not installed,
empty ones take their place. Needs a GPU, PEFT and TRL.
"""

import argparse
import importlib.machinery
import importlib.util
import json
import os
import sys
import tempfile
import time
import types

import torch

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")


MISSING = (
    "pandas", "pyarrow", "pyarrow.compute", "pyarrow.types", "datasets", "datasets.fingerprint",
    "requests", "requests.adapters", "urllib3", "urllib3.util", "urllib3.util.retry",
)


class _Empty(types.ModuleType):
    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (), {})
        setattr(self, name, made)
        return made


def fill_in_missing() -> None:
    for name in MISSING:
        try:
            found = importlib.util.find_spec(name) is not None
        except (ImportError, ValueError):
            found = False
        if not found:
            module = _Empty(name)
            module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package="." not in name)
            module.__path__ = []
            sys.modules[name] = module


fill_in_missing()
from datasets import Dataset  # noqa: E402
from peft import LoraConfig  # noqa: E402
from transformers import PreTrainedTokenizerFast  # noqa: E402
from trl import GRPOConfig, GRPOTrainer  # noqa: E402

from flywheel_trainer.adapter import LINEARS  # noqa: E402
from tasks import RANK, random_sequences  # noqa: E402
from throughput import CUDA, DEVICE, SHAPES, Ours, finish, free, fresh_model, peak_gib, say  # noqa: E402


def prompts(count: int):
    """Stand for the prompts that TRL asks for."""
    rows = [{"prompt": "x"}] * count
    if hasattr(Dataset, "from_list"):
        return Dataset.from_list(rows)
    members = {"column_names": ["prompt"], "cache_files": [], "info": None, "__len__": lambda _: count, "__getitem__": lambda _, index: rows[index]}
    return type("Prompts", (Dataset,), members)()


class Fed(GRPOTrainer):
    """Gets the micro-batches of a gradient step again and again instead of generating."""

    def feed(self, data: list[dict], size: int) -> None:
        self.batches = [self._batch(data[start : start + size]) for start in range(0, len(data), size)]
        self.times: list[float] = []

    def _batch(self, part: list[dict]) -> dict:
        prompts = [one["ids"][: one["mask"].index(1)] for one in part]
        replies = [one["ids"][one["mask"].index(1) :] for one in part]
        width, height = max(map(len, prompts)), max(map(len, replies))
        ids = lambda rows: torch.tensor(rows, device=DEVICE)
        return {
            "prompt_ids": ids([[0] * (width - len(row)) + row for row in prompts]),
            "prompt_mask": ids([[0] * (width - len(row)) + [1] * len(row) for row in prompts]),
            "completion_ids": ids([row + [0] * (height - len(row)) for row in replies]),
            "completion_mask": ids([[1] * len(row) + [0] * (height - len(row)) for row in replies]),
            "advantages": torch.tensor([one["advantage"] for one in part], device=DEVICE),
            "old_per_token_logps": torch.full((len(part), height), -12.0, device=DEVICE),
            "num_items_in_batch": torch.tensor(sum(sum(one["mask"]) for one in part), device=DEVICE),
        }

    def _prepare_inputs(self, _):
        if self._step % len(self.batches) == 0:
            finish()
            self.times.append(time.perf_counter())
        return self.batches[self._step % len(self.batches)]


def trl(config, data: list[dict], size: int, steps: int) -> tuple[float, float]:
    """Seconds of a gradient step and the peak memory."""
    free()
    settings = GRPOConfig(
        output_dir=tempfile.mkdtemp(), per_device_train_batch_size=size, gradient_accumulation_steps=len(data) // size,
        num_generations=min(8, size), max_steps=steps + 2, loss_type="cispo", epsilon_high=5.0, beta=0.0, bf16=CUDA, use_cpu=not CUDA,
        gradient_checkpointing=False, learning_rate=1e-5, max_grad_norm=0.1, report_to=[], save_strategy="no",
        logging_steps=1000, disable_tqdm=True, max_completion_length=1024, optim="adamw_torch_fused" if CUDA else "adamw_torch",
    )
    targets = [path.rpartition(".")[2] for path in LINEARS.values()]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=os.path.join(ROOT, "models/flywheel-mini/tokenizer.json"), eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    trainer = Fed(
        model=fresh_model(config, "sdpa"), reward_funcs=lambda completions, **_: [0.0] * len(completions), args=settings,
        train_dataset=prompts(4096), processing_class=tokenizer,
        peft_config=LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules=targets),
    )
    trainer.feed(data, size)
    trainer.train()
    finish()
    each = [b - a for a, b in zip(trainer.times, [*trainer.times[1:], time.perf_counter()])]
    say(f"TRL by {size}: {' '.join(f'{seconds:.2f}' for seconds in each)}")
    return sorted(each[1:-1])[(len(each) - 2) // 2], peak_gib()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--shapes", default="1.7b")
    parser.add_argument("--kinds", default="shared,unshared")
    parser.add_argument("--sizes", default="4,8,16")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=150, help="nothing starts after this long")
    args = parser.parse_args()
    began = time.monotonic()
    for shape in args.shapes.split(","):
        config = SHAPES[shape]
        for kind in args.kinds.split(","):
            if time.monotonic() - began > args.seconds:
                break
            data = random_sequences(kind, 32, config.vocab_size - 1, args.scale)
            tokens = sum(len(one["ids"]) for one in data)
            ours = Ours(config)
            mine = ours.run(data, args.steps, None, warm=2)
            del ours
            best = None
            for size in (int(text) for text in args.sizes.split(",")):
                try:
                    seconds, gib = trl(config, sorted(data, key=lambda one: len(one["ids"])), size, args.steps)
                except torch.OutOfMemoryError:
                    say(f"TRL by {size}: out of memory")
                    break
                if best is None or seconds < best[0]:
                    best = (seconds, gib, size)
            line = {"shape": shape, "kind": kind, "tokens": tokens, "ours_tokens_per_s": round(tokens / mine["seconds"]), "ours_gib": mine["gib"]}
            if best:
                line |= {"trl_tokens_per_s": round(tokens / best[0]), "trl_gib": best[1], "trl_micro_batch": best[2],
                         "ratio": round(best[0] / mine["seconds"], 2)}
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
