"""Keeps one skill half-learned. Its examples are mixed in only while a probe measures it below the target.

The demo trains three-digit addition without thinking. So the model should get it right often enough to be rewarded, and wrong
often enough to have something to learn. A few thousand examples teach it completely. Nobody knows beforehand how few are too
few, so the dose follows the measurement.
"""
import lzma
import json

import torch
from tokenizers import Tokenizer

from perplexity import eager_hidden


class Dose:
    """examples: rendered conversations to learn from; probes: rendered held-out conversations to measure on."""

    def __init__(self, tokenizer_path, examples, probes, target, device="cuda"):
        tokenizer = Tokenizer.from_file(tokenizer_path)
        header = "</think>\n\n"
        self.end = tokenizer.token_to_id("<|im_end|>")
        self.target, self.device, self.on, self.used = target, device, False, 0

        def split(text):
            at = text.index(header) + len(header)
            return tokenizer.encode(text[:at]).ids, tokenizer.encode(text[at:].rstrip("\n")).ids

        self.examples = [split(text) for text in read(examples)]
        self.probes = [split(text) for text in read(probes)]

    @torch.no_grad()
    def measure(self, model):
        """Share of probes answered exactly right, greedily."""
        rows = [list(prompt) for prompt, _ in self.probes]
        longest = max(len(reply) for _, reply in self.probes)
        for _ in range(longest):
            lengths = torch.tensor([len(row) for row in rows])
            cu = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]).to(self.device, torch.int32)
            flat = torch.tensor([token for row in rows for token in row], device=self.device)
            hidden = eager_hidden(model, flat, cu)
            for row, token in zip(rows, model.logits(hidden[cu[1:].long() - 1]).argmax(-1).tolist()):
                row.append(token)
        right = sum(row[len(prompt) : len(prompt) + len(reply)] == reply for row, (prompt, reply) in zip(rows, self.probes))
        share = right / len(self.probes)
        self.on = share < self.target
        return share

    def mix(self, batch):
        """Overwrites the end of the batch with one example while the dose is on."""
        if not self.on:
            return batch
        tokens, positions, labels, cu, longest = batch
        prompt, reply = self.examples[self.used % len(self.examples)]
        self.used += 1
        size, length = tokens.numel(), len(prompt) + len(reply)
        tokens[size - length :] = torch.tensor(prompt + reply, device=self.device)
        positions[size - length :] = torch.arange(length, device=self.device)
        labels[size - length - 1 :] = -1
        # The token before the reply predicts its first token.
        labels[size - len(reply) - 1 : size - 1] = torch.tensor(reply, device=self.device)
        kept = cu[cu < size - length]
        cu = torch.cat([kept, torch.tensor([size - length, size], dtype=torch.int32, device=self.device)])
        return tokens, positions, labels, cu, max(longest, length)


def read(path):
    with lzma.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]
