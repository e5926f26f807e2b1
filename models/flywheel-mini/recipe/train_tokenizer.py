"""Tokenizer: byte-level BPE with 8,192 entries. Every digit is its own token.

    python3 train_tokenizer.py --pack PACK --out FOLDER

Reads a sample of every file *.jsonl.xz of PACK. The chat markers are special tokens, hidden in decoded text. The
think and tool markers are ordinary added tokens, so that a client without a parser sees them.
"""
import argparse
import glob
import json
import lzma
import os

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MARKERS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
VOCABULARY = 8192
# A word with the space before it, a single digit, other characters, line ends, spaces.
PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s*[\r\n]+|\s+(?!\S)|\s+"


def sample(pack, limit):
    for path in sorted(glob.glob(os.path.join(pack, "*.jsonl.xz"))):
        used = 0
        with lzma.open(path, "rt") as lines:
            for line in lines:
                item = json.loads(line)
                text = item if isinstance(item, str) else item[1]
                for marker in SPECIAL + MARKERS:
                    text = text.replace(marker, "\n")
                used += len(text)
                if used > limit:
                    break
                yield text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pack", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--sample", type=int, default=25_000_000, help="characters per file")
    options = parser.parse_args()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(PATTERN), behavior="isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[AddedToken(t, special=True, normalized=False) for t in SPECIAL + MARKERS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=16,
    )
    tokenizer.train_from_iterator(sample(options.pack, options.sample), trainer=trainer)
    os.makedirs(options.out, exist_ok=True)
    path = os.path.join(options.out, "tokenizer.json")
    tokenizer.save(path)
    with open(path) as file:
        data = json.load(file)
    for token in data["added_tokens"]:
        token["special"] = token["content"] in SPECIAL
    assert len(data["model"]["vocab"]) == VOCABULARY, len(data["model"]["vocab"])
    with open(path, "w") as file:
        json.dump(data, file, ensure_ascii=False)
    with open(os.path.join(options.out, "tokenizer_config.json"), "w") as file:
        json.dump(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "bos_token": None,
                "eos_token": "<|im_end|>",
                "pad_token": "<|endoftext|>",
                "unk_token": None,
                "model_max_length": 2048,
                "clean_up_tokenization_spaces": False,
                "add_prefix_space": False,
            },
            file,
            indent=2,
        )
    print("tokenizer saved:", path, len(data["model"]["merges"]), "merges")


if __name__ == "__main__":
    main()
