"""Pretraining on all text, the real chat, the reading exercises and the synthetic chat. Every token is learned.

    python3 pretrain.py --tokens TOKENS --pack PACK --tokenizer FOLDER --out CHECKPOINT [--seconds 430]
"""
import argparse

import torch

from attention import choose
from batches import Stream
from model import Mini, parameters_of
from perplexity import HeldOut
from train import save, train

PLAN = [("text", 13, True), ("real", 7, True), ("reading", 4, True), ("synthetic", 4, True)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", required=True)
    parser.add_argument("--pack", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=float, default=430)
    parser.add_argument("--share", type=float, default=1.0, help="of the epochs: small for a smoke test")
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    model = Mini(choose()).cuda()
    print("parameters:", parameters_of(model))
    stream = Stream(options.tokens, [(name, epochs * options.share, every) for name, epochs, every in PLAN], 65536, seed=1)
    heldout = HeldOut(options.pack, options.tokenizer)
    train(model, stream, "pretrain", options.out, options.seconds, muon_lr=0.02, adam_lr=0.003, warm=100, decay=0.4, floor=0.3, evaluate=heldout)
    save(model, options.out, "pretrained")


if __name__ == "__main__":
    main()
