"""Where bfloat16 loses digits: log-probabilities of sampled replies in both types, by this trainer and by Hugging Face.

    PYTHONPATH=trainer:trainer/tests python bench/torch/rounding.py --model models/flywheel-mini

Everything runs the base model over the same tokens: those that the model sampled until it ended. Prints one JSON object
per way to compute: mean, 99th percentile and largest difference from products in float64, and the mean by how likely the
tokens are. `hf`: the model as transformers runs it. `ours`: this trainer. The others change one thing of `ours bfloat16`.
"""

import argparse
import json
import os
import tempfile
import time
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import AutoConfig, AutoModelForCausalLM

import flywheel_trainer.model as trainer
from agreement import DEVICE, MINI, pass_over, replies, spread
from flywheel_trainer.model import LoraLinear, TrainableModel
from tasks import write_adapter

# Bounds of the log-probabilities that differences are averaged for.
LIKELY = (0.0, -1.0, -3.0, -6.0, -1e9)


def by_likelihood(off: Tensor, wanted: Tensor) -> list[float]:
    """Means of the differences, likely tokens first."""
    parts = [off.abs()[(wanted <= high) & (wanted > low)] for high, low in zip(LIKELY, LIKELY[1:])]
    return [round(float(part.mean()), 5) if len(part) else 0.0 for part in parts]


@torch.no_grad()
def by_hugging_face(folder: str, dtype: torch.dtype, data: list[dict], wide_head: bool) -> Tensor:
    """One sequence at a time. `wide_head`: logits as float32 products of what the body gave."""
    options = {"dtype": dtype, "attn_implementation": "sdpa"}
    model = AutoModelForCausalLM.from_pretrained(folder, **options, use_safetensors=True).to(DEVICE).eval()
    found = []
    for one in data:
        ids = torch.tensor([one["ids"]], device=DEVICE)
        start = one["mask"].index(1)
        hidden = model.model(ids, use_cache=False).last_hidden_state[0, start - 1 : -1]
        weight = model.lm_head.weight
        logits = hidden.float() @ weight.float().T if wide_head else hidden @ weight.T
        logits = logits.to(max(dtype, torch.float32, key=lambda kind: kind.itemsize))
        found.append(logits.log_softmax(-1).gather(-1, ids[0, start:, None])[:, 0].double().cpu())
    return torch.cat(found)


def round_weights(folder: str) -> str:
    """A copy of the checkpoint in bfloat16."""
    copy = tempfile.mkdtemp()
    AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16, use_safetensors=True).save_pretrained(copy)
    return copy


@contextmanager
def changed(owner, name: str, value):
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def wide_output(self: LoraLinear, x: Tensor) -> Tensor:
    """Inputs rounded as usual, outputs float32."""
    return F.linear(x.to(self.weight.dtype).float(), self.weight.float(), None if self.bias is None else self.bias.float())


def exact_logits(hidden: Tensor, weight: Tensor) -> Tensor:
    logits = hidden.float() @ weight.float().T
    return logits - logits.amax(-1, keepdim=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default=MINI)
    parser.add_argument("--groups", type=int, default=16)
    parser.add_argument("--length", type=int, default=64, help="the most tokens of a reply")
    parser.add_argument("--forced", action="store_true", help="replies go on to that length, beyond where the model ends")
    parser.add_argument("--sources", action="store_true", help="also change the linear layers one by one")
    args = parser.parse_args()
    began = time.monotonic()
    data = replies(args.groups, args.length, args.model, args.forced)
    home = tempfile.mkdtemp()
    write_adapter(os.path.join(home, "start"), AutoConfig.from_pretrained(args.model))
    wanted = by_hugging_face(args.model, torch.float64, data, wide_head=False)
    trained = sum(sum(one["mask"]) for one in data)
    print(json.dumps({"model": os.path.basename(args.model), "forced": args.forced, "tokens": trained,
                      "mean_logprob": round(float(wanted.mean()), 3)}), flush=True)

    def say(name: str, found: Tensor) -> None:
        off = found - wanted
        numbers = {key: float(f"{value:.3g}") for key, value in spread(off).items()}
        line = {"way": name, **numbers, "by_likelihood": by_likelihood(off, wanted), "s": round(time.monotonic() - began)}
        print(json.dumps(line), flush=True)

    def ours(name: str, model: TrainableModel, alone: bool = False) -> None:
        with torch.no_grad():
            say(name, pass_over(model, home, data, alone, scale=0.0)[0])

    say("hf float32", by_hugging_face(args.model, torch.float32, data, wide_head=False))
    single = TrainableModel.load(args.model, "float32", DEVICE)
    ours("ours float32", single)
    ours("ours float32, one sequence at a time", single, alone=True)
    rounded = round_weights(args.model)
    say("hf float32, weights rounded to bfloat16", by_hugging_face(rounded, torch.float32, data, wide_head=False))
    say("hf bfloat16", by_hugging_face(args.model, torch.bfloat16, data, wide_head=False))
    say("hf bfloat16, logits float32", by_hugging_face(args.model, torch.bfloat16, data, wide_head=True))
    model = TrainableModel.load(args.model, "bfloat16", DEVICE)
    ours("ours bfloat16", model)
    ours("ours bfloat16, one sequence at a time", model, alone=True)
    with changed(trainer, "_logits", exact_logits):
        ours("head float32", model)
    with changed(model, "embed", model.body.embed_tokens):
        ours("sums of layers bfloat16", model)
    for name, maps in () if not args.sources else (("q, k", "qk"), ("v, o", "vo"), ("gate, up", ("gate", "up")), ("down", ("down",)), ("all", None)):
        plain = trainer.LoraLinear.forward
        chosen = {id(linear) for key, linear in model.linears.items() if maps is None or key.split(".")[1] in maps}
        pick = lambda self, x, chosen=chosen: wide_output(self, x) if id(self) in chosen else plain(self, x)
        with changed(trainer.LoraLinear, "forward", pick):
            model.flex and torch._dynamo.reset()
            ours(f"outputs of {name} float32", model)


if __name__ == "__main__":
    main()
