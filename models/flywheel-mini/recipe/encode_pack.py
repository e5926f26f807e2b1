"""Tokens: turns the text packs into compact token files (uint16), with a bit that marks the tokens to learn.

    python3 encode_pack.py --pack PACK --tokenizer FOLDER --out TOKENS

For every file NAME.jsonl.xz in PACK it writes NAME.npz: tokens (uint16), learn (uint8) and starts (int64, one more than
documents). learn is 1 inside a reply, including its end marker but not the empty think block, which the prompt supplies.
Plain text gets <|endoftext|> at its end and is cut into pieces of the context length.
"""
import argparse
import glob
import json
import lzma
import multiprocessing
import os

import numpy as np
from tokenizers import Tokenizer

CONTEXT = 2048
state = {}


def prepare(folder):
    tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    state["tokenizer"] = tokenizer
    state["start"] = tokenizer.token_to_id("<|im_start|>")
    state["end"] = tokenizer.token_to_id("<|im_end|>")
    state["eot"] = tokenizer.token_to_id("<|endoftext|>")
    state["header"] = tokenizer.encode("assistant\n").ids
    state["empty"] = tokenizer.encode("<think>\n\n</think>\n\n").ids


def reply_mask(ids):
    """1 for the tokens of replies: from after the header (and an empty think block) to the end marker."""
    learn = np.zeros(len(ids), dtype=np.uint8)
    header, empty = state["header"], state["empty"]
    for begin in [i for i, t in enumerate(ids) if t == state["start"]]:
        at = begin + 1
        if ids[at : at + len(header)] != header:
            continue
        at += len(header)
        if ids[at : at + len(empty)] == empty:
            at += len(empty)
        try:
            stop = ids.index(state["end"], at)
        except ValueError:
            stop = len(ids) - 1
        learn[at : stop + 1] = 1
    return learn


def encode(texts):
    tokens, learn, lengths = [], [], []
    for encoded, text in zip(state["tokenizer"].encode_batch(texts), texts):
        ids = encoded.ids
        if text.startswith("<|im_start|>"):
            pieces = [(ids[:CONTEXT], reply_mask(ids[:CONTEXT]))]
        else:
            ids = ids + [state["eot"]]
            cuts = range(0, len(ids), CONTEXT)
            pieces = [(ids[i : i + CONTEXT], np.ones(len(ids[i : i + CONTEXT]), dtype=np.uint8)) for i in cuts]
        for piece, mask in pieces:
            if len(piece) > 8:
                tokens.append(np.array(piece, dtype=np.uint16))
                learn.append(mask)
                lengths.append(len(piece))
    return np.concatenate(tokens), np.concatenate(learn), lengths


def batches(path, size=2000):
    batch = []
    with lzma.open(path, "rt") as lines:
        for line in lines:
            item = json.loads(line)
            batch.append(item if isinstance(item, str) else item[1])
            if len(batch) == size:
                yield batch
                batch = []
    if batch:
        yield batch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pack", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    with multiprocessing.Pool(max(1, (os.cpu_count() or 2) - 1), prepare, (options.tokenizer,)) as pool:
        for path in sorted(glob.glob(os.path.join(options.pack, "*.jsonl.xz"))):
            parts = list(pool.imap(encode, batches(path)))
            lengths = np.concatenate([np.array(part[2], dtype=np.int64) for part in parts])
            name = os.path.basename(path).split(".")[0]
            tokens = np.concatenate([part[0] for part in parts])
            learn = np.concatenate([part[1] for part in parts])
            starts = np.concatenate([[0], np.cumsum(lengths)])
            np.savez(os.path.join(options.out, name + ".npz"), tokens=tokens, learn=learn, starts=starts)
            print(f"{name}: {len(lengths)} documents, {len(tokens) / 1e6:.1f} M tokens, {learn.sum() / 1e6:.1f} M to learn", flush=True)


if __name__ == "__main__":
    main()
