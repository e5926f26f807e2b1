"""Instruction tuning: chat with the loss on replies only, and some plain text so that reading is not forgotten.

    python3 tune.py --tokens TOKENS --pack PACK --tokenizer FOLDER --start WEIGHTS --out CHECKPOINT [--stage polish] [--seconds 200]

WEIGHTS is pretrained.pt for the stage "tune", the model.safetensors of an exported model for the stage "polish": the same once
more with a lower rate and a fresh optimizer, on newly drawn chat.
"""
import argparse
import os
import time

import torch
from safetensors.torch import load_file

from attention import choose
from batches import Stream
from dose import Dose
from model import Mini
from perplexity import HeldOut, Replies
from train import train

STAGES = {
    "tune": {
        "plan": [("synthetic", 9, False), ("real", 2.5, False), ("formats", 5, False), ("reading", 5, False), ("text", 2, True)],
        "rates": {"muon_lr": 0.012, "adam_lr": 0.0018, "warm": 100, "decay": 0.97},
        "dose": 0.4,
        "saved": "tuned.pt",
    },
    "polish": {
        "plan": [("synthetic", 3, False), ("real", 3, False), ("formats", 4, False), ("reading", 3, False), ("text", 4, True)],
        "rates": {"muon_lr": 0.004, "adam_lr": 0.0006, "warm": 50, "decay": 1.0, "every": 500},
        "dose": 0.5,
        "saved": "polished.pt",
    },
}


def main():
    begin = time.time()
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", required=True)
    parser.add_argument("--pack", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--start", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--stage", choices=STAGES, default="tune")
    parser.add_argument("--seconds", type=float, default=330)
    parser.add_argument("--at-most", type=float, default=3600, help="seconds for everything: a slow start shortens the training")
    parser.add_argument("--share", type=float, default=1.0, help="of the epochs: small for a smoke test")
    options = parser.parse_args()
    stage = STAGES[options.stage]
    torch.manual_seed(2)
    torch.set_float32_matmul_precision("high")
    model = Mini(choose()).cuda()
    weights = load_file(options.start) if options.start.endswith(".safetensors") else torch.load(options.start)
    model.load_state_dict({k: v.float() for k, v in weights.items()})
    stream = Stream(options.tokens, [(name, epochs * options.share, every) for name, epochs, every in stage["plan"]], 65536, seed=2)
    text = HeldOut(options.pack, options.tokenizer)
    replies = Replies(options.tokens)
    dose = Dose(
        os.path.join(options.tokenizer, "tokenizer.json"),
        os.path.join(options.pack, "dose", "add3.jsonl.xz"),
        os.path.join(options.pack, "dose", "probe.jsonl.xz"),
        target=stage["dose"],
    )
    train(
        model,
        stream,
        options.stage,
        options.out,
        options.seconds,
        **stage["rates"],
        floor=0.0,
        evaluate=lambda trained: {**text(trained), **replies(trained)},
        dose=dose,
        until=begin + options.at_most,
    )
    torch.save({k: v.bfloat16() for k, v in model.state_dict().items()}, os.path.join(options.out, stage["saved"]))


if __name__ == "__main__":
    main()
