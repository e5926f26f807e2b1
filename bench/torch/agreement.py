"""Whether the torch trainer computes the right numbers on this machine: on a GPU if there is one.

    PYTHONPATH=trainer:trainer/tests python bench/torch/agreement.py --seconds 240

Checks, one JSON object each: the loss vectors, the references of six families in float32 and bfloat16, bfloat16
beside float32 on what flywheel-mini says, shared prompts beside separate sequences, and whether a task repeats bit
for bit in two processes. Bounds are printed beside what was found.
"""

import argparse
import hashlib
import json
import os
import shutil
import tempfile
import time

import torch
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModelForCausalLM

import fixtures
import vectors
from driver import PLAIN, TrainerProcess
from flywheel_trainer.adapter import flatten, load_adapter
from flywheel_trainer.batch import Memory, plan_micro_batches, read_batch
from flywheel_trainer.model import TrainableModel
from tasks import sequence, task, write_adapter

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
MINI = os.path.join(ROOT, "models/flywheel-mini")
FAMILIES = ("llama", "llama3", "qwen2", "qwen3", "mistral", "gemma3")
BOUNDS = {"base": 1e-4, "logprobs": 1e-5, "gradient": 1e-3, "after": 1e-5}
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
QUESTIONS = [
    "Hi there! How are you today?", "Tell me a short story about a fox.", "What is 412 + 230?", "Shall we go? Yes or no?",
    "Why does the sun look red in the evening?", "What could I make for dinner with eggs and rice?",
    "Can you recommend a hobby for the winter?", "What can you help me with?",
]


def say(check: str, **found) -> None:
    print(json.dumps({"check": check, **found}), flush=True)


def check_vectors() -> None:
    found = vectors.compare(os.path.join(ROOT, "test/fixtures/training-vectors.json"))
    say("loss vectors", **found, ok=found["unequal"] == 0 and max(found["loss"], found["gradient"]) <= 1e-9)


def check_fixtures(dtype: str) -> None:
    for family in FAMILIES:
        fixture = os.path.join(ROOT, "test/fixtures", family)
        base = tempfile.mkdtemp()
        for name in ("config.json", "model.safetensors"):
            shutil.copy(os.path.join(fixture, name), base)
        try:
            found = fixtures.compare(base, fixture, dtype)
        except Exception as error:  # the other families still count
            say(f"references {family} {dtype}", error=f"{type(error).__name__}: {error}"[:300], ok=False)
            continue
        worst = {name: max(v for key, v in found.items() if key.split(".")[0] == name) for name in BOUNDS}
        ok = {"ok": all(worst[name] <= bound for name, bound in BOUNDS.items())} if dtype == "float32" else {}
        say(f"references {family} {dtype}", **{name: float(f"{value:.2g}") for name, value in worst.items()}, **ok)


def replies(count: int, length: int, folder: str = MINI, forced: bool = False) -> list[dict]:
    """Groups of 8 sampled replies by the model itself; a long prompt, so that there is something to share.

    A reply ends where the model ends it, or after `length` tokens. `forced`: it goes on to that length in any case.
    """
    tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, use_safetensors=True).to(DEVICE)
    end = model.config.eos_token_id
    torch.manual_seed(3)
    found = []
    for group in range(count):
        turns = [QUESTIONS[(group + i) % len(QUESTIONS)] for i in range(8)]
        text = "".join(f"<|im_start|>user\n{turn}<|im_end|>\n<|im_start|>assistant\nIt depends.<|im_end|>\n" for turn in turns)
        prompt = tokenizer.encode(f"{text}<|im_start|>user\n{QUESTIONS[group % 8]}<|im_end|>\n<|im_start|>assistant\n").ids
        ids = torch.tensor([prompt] * 8, device=DEVICE)
        out = model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=True, temperature=1.0, top_p=1.0, top_k=0,
            max_new_tokens=length, min_new_tokens=length if forced else 1, pad_token_id=0,
        )
        for i, row in enumerate(out[:, len(prompt):].tolist()):
            row = row[: row.index(end) + 1] if end in row else row
            found.append(sequence(prompt, row, group, 1.0 if i % 2 else -0.6, -3.0))
    return found


def pass_over(
    model: TrainableModel, home: str, data: list[dict], alone: bool, scale: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities of all trained tokens in the order of the batch, and the gradient of their weighted sum.

    `scale`: of the adapter, if not its own. 0 is the base model, which has no gradient.
    """
    path = os.path.join(home, "sequences.jsonl")
    with open(path, "w", encoding="utf8") as file:
        file.write("\n".join(json.dumps({**one, "group": -1} if alone else one) for one in data))
    adapter = load_adapter(os.path.join(home, "start"), model.layers)
    params = flatten(adapter, DEVICE)
    gradient = torch.zeros_like(params)
    model.set_adapter(params, adapter, adapter.scale if scale is None else scale, gradient)
    found = {}
    batch = read_batch(path)
    parts = [[one] for one in batch] if alone else [batch]
    for part in parts:
        for micro in plan_micro_batches(part, Memory(65_536, 65_536)):
            out = model.forward(micro).logprobs
            weights = torch.cat([torch.full((len(s.predicting),), s.advantage) for s in micro.rows.sequences])
            if scale != 0:
                out.backward(weights.to(out) / len(data))
            for one, values in zip(micro.rows.sequences, out.detach().cpu().double().split([len(s.predicting) for s in micro.rows.sequences])):
                found[one.index] = values
    return torch.cat([found[index] for index in sorted(found)]), gradient.cpu().double()


def spread(difference: torch.Tensor) -> dict[str, float]:
    off = difference.abs()
    return {"mean": float(off.mean()), "p99": float(off.quantile(0.99)), "max": float(off.max())}


def check_mini(home: str, data: list[dict]) -> None:
    passes = {}
    for dtype in ("float32", "bfloat16"):
        model = TrainableModel.load(MINI, dtype, DEVICE)
        together, gradient = pass_over(model, home, data, alone=False)
        separate, other = pass_over(model, home, data[:: max(1, len(data) // 16)], alone=True)
        again, same = pass_over(model, home, data[:: max(1, len(data) // 16)], alone=False)
        off = spread(again - separate)
        relative = float((same - other).norm() / other.norm())
        bound = 1e-5 if dtype == "float32" else 2e-2
        say(f"shared beside separate {dtype}", tokens=len(separate), **off, gradient_relative=relative, bound_on_mean=bound,
            ok=off["mean"] <= bound and (dtype == "bfloat16" or off["max"] <= bound))
        passes[dtype] = (together, gradient)
    off = spread(passes["bfloat16"][0] - passes["float32"][0])
    wanted = passes["float32"][1]
    relative = float((passes["bfloat16"][1] - wanted).norm() / wanted.norm())
    say("bfloat16 beside float32, flywheel-mini", tokens=len(passes["float32"][0]), **off, gradient_relative=relative,
        bounds={"mean": 5e-3, "p99": 5e-2}, ok=off["mean"] <= 5e-3 and off["p99"] <= 5e-2)


def check_determinism(home: str, data: list[dict], dtype: str, deterministic: bool, steps: int) -> None:
    digests, seconds = [], []
    for _ in range(2):
        # nothing that the first one compiled or chose may help the second
        env = {"FLYWHEEL_TRAINER_DETERMINISTIC": "1" if deterministic else "0", "TORCHINDUCTOR_CACHE_DIR": tempfile.mkdtemp()}
        trainer = TrainerProcess(PLAIN, env)
        wanted = task(home, MINI, dtype, data, steps, per_step=max(8, len(data) // 2))
        began = time.perf_counter()
        trainer.train(wanted)
        seconds.append(round(time.perf_counter() - began, 1))
        trainer.close()
        files = sorted(os.listdir(wanted["output"]))
        digests.append({name: hashlib.sha256(open(os.path.join(wanted["output"], name), "rb").read()).hexdigest()[:16] for name in files})
    same = digests[0] == digests[1]
    say(f"twice the same bits, {dtype}", deterministic=deterministic, steps=steps, same=same, seconds=seconds,
        adapter=digests[0]["adapter_model.safetensors"], **({"ok": same} if deterministic else {}))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=240, help="no check starts after this long")
    parser.add_argument("--groups", type=int, default=16)
    parser.add_argument("--length", type=int, default=64, help="tokens of each reply")
    parser.add_argument("--only", default="vectors,float32,bfloat16,mini,determinism")
    args = parser.parse_args()
    began = time.monotonic()
    say("machine", torch=torch.__version__, device=torch.cuda.get_device_name() if DEVICE.type == "cuda" else "cpu")
    home = tempfile.mkdtemp()
    write_adapter(os.path.join(home, "start"), AutoConfig.from_pretrained(MINI))
    data: list[dict] = []

    def said() -> list[dict]:
        if not data:
            data.extend(replies(args.groups, args.length))
        return data

    checks = {
        "vectors": [check_vectors],
        "float32": [lambda: check_fixtures("float32")],
        "mini": [lambda: check_mini(home, said())],
        "determinism": [
            lambda: check_determinism(home, said(), "bfloat16", True, 4),
            lambda: check_determinism(home, said(), "float32", True, 4),
            lambda: check_determinism(home, said(), "bfloat16", False, 4),
        ],
        "bfloat16": [lambda: check_fixtures("bfloat16")],
    }
    for name, runs in checks.items():
        for run in runs if name in args.only.split(",") else []:
            if time.monotonic() - began > args.seconds:
                say(name, skipped="no time left")
                continue
            start = time.monotonic()
            try:
                run()
            except Exception as error:  # the other checks still count
                say(name, error=f"{type(error).__name__}: {error}"[:600], ok=False)
            say(f"{name} took", seconds=round(time.monotonic() - start, 1))


if __name__ == "__main__":
    main()
