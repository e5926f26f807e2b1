"""Instruction tuning: chat with the loss on replies only, and some plain text so that reading is not forgotten.

    python3 tune.py --tokens TOKENS --pack PACK --tokenizer FOLDER --start pretrained.pt --out CHECKPOINT [--seconds 200]
"""
import argparse
import os

import torch

from attention import choose
from batches import Stream
from dose import Dose
from model import Mini
from perplexity import HeldOut
from train import train

PLAN = [("synthetic", 9, False), ("real", 2.5, False), ("formats", 5, False), ("reading", 5, False), ("text", 2, True)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", required=True)
    parser.add_argument("--pack", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--start", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=float, default=330)
    parser.add_argument("--share", type=float, default=1.0, help="of the epochs: small for a smoke test")
    options = parser.parse_args()
    torch.manual_seed(2)
    torch.set_float32_matmul_precision("high")
    model = Mini(choose()).cuda()
    model.load_state_dict({k: v.float() for k, v in torch.load(options.start).items()})
    stream = Stream(options.tokens, [(name, epochs * options.share, every) for name, epochs, every in PLAN], 65536, seed=2)
    heldout = HeldOut(options.pack, options.tokenizer)
    dose = Dose(
        os.path.join(options.tokenizer, "tokenizer.json"),
        os.path.join(options.pack, "dose", "add3.jsonl.xz"),
        os.path.join(options.pack, "dose", "probe.jsonl.xz"),
        target=0.4,
    )
    train(model, stream, "tune", options.out, options.seconds, muon_lr=0.012, adam_lr=0.0018, warm=100, decay=0.97, floor=0.0, evaluate=heldout, dose=dose)
    torch.save({k: v.bfloat16() for k, v in model.state_dict().items()}, os.path.join(options.out, "tuned.pt"))


if __name__ == "__main__":
    main()
