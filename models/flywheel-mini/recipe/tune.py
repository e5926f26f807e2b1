"""Instruction tuning: chat with the loss on replies only, and some plain text so that reading is not forgotten.

    python3 tune.py --stage STAGE --tokens TOKENS --pack PACK --tokenizer FOLDER --start WEIGHTS.pt --out WORK --seconds 640

Two stages. "tune" starts from pretrained.pt and writes tuned.pt. "settle" continues at half the rate with newly drawn synthetic
chat and little else, and writes settled.pt.
"""
import argparse
import os

import torch

from attention import choose
from batches import Stream
from dose import Dose
from model import Mini
from perplexity import HeldOut, Replies
from train import save, train

# "fresh" and "last" are synthetic chat that earlier stages have not seen.
STAGES = {
    "tune": {
        "plan": [("synthetic", 4, False), ("fresh", 7, False), ("real", 6, False), ("formats", 6, False), ("reading", 6, False), ("text", 5, True)],
        "rates": {"muon_lr": 0.012, "adam_lr": 0.0018, "warm": 100, "decay": 0.97},
        "dose": 0.35,
        "saved": "tuned",
    },
    "settle": {
        "plan": [("last", 6, False), ("real", 0.8, False), ("formats", 4, False), ("reading", 3, False), ("text", 2.5, True)],
        "rates": {"muon_lr": 0.006, "adam_lr": 0.0009, "warm": 50, "decay": 1.0},
        "dose": 0.5,
        "saved": "settled",
    },
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stage", choices=STAGES, required=True)
    parser.add_argument("--tokens", required=True)
    parser.add_argument("--pack", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--start", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--share", type=float, default=1.0, help="of the epochs: small for a smoke test")
    options = parser.parse_args()
    stage = STAGES[options.stage]
    torch.manual_seed(2)
    torch.set_float32_matmul_precision("high")
    model = Mini(choose()).cuda()
    model.load_state_dict({k: v.float() for k, v in torch.load(options.start, weights_only=True).items()})
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
    )
    save(model, options.out, stage["saved"])


if __name__ == "__main__":
    main()
