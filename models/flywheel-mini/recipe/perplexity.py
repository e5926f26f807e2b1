"""Measures a model: bits per byte on held-out documents, which do not depend on the tokenizer, and the loss on the replies of
held-out conversations."""
import json
import math
import os

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

from batches import Stream


class HeldOut:
    def __init__(self, pack, folder, per_source=60, context=1024):
        tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        self.groups = {}
        counts = {}
        with open(os.path.join(pack, "heldout.jsonl")) as lines:
            for source, text in map(json.loads, lines):
                counts[source] = counts.get(source, 0) + 1
                if counts[source] > per_source:
                    continue
                text = text[:6000]
                ids = tokenizer.encode(text).ids[:context]
                size = len(tokenizer.decode(ids).encode())
                first = len(tokenizer.decode(ids[:1]).encode())
                self.groups.setdefault(source, []).append((torch.tensor(ids, device="cuda"), size - first))

    @torch.no_grad()
    def __call__(self, model):
        """The first token of a document is not predicted, so its bytes do not count."""
        result = {}
        for source, documents in self.groups.items():
            nats, size = 0.0, 0
            for ids, length in documents:
                cu = torch.tensor([0, len(ids)], dtype=torch.int32, device="cuda")
                hidden = eager_hidden(model, ids, cu)
                nats += F.cross_entropy(model.logits(hidden[:-1]), ids[1:], reduction="sum").item()
                size += length
            result[f"bits_per_byte_{source}"] = round(nats / math.log(2) / size, 4)
        return result


class Replies:
    """Mean loss over the replies in one batch of held-out chat."""

    def __init__(self, tokens):
        self.batch = Stream(tokens, [("replies", 1, False)], 65536, seed=0).batch(0)

    @torch.no_grad()
    def __call__(self, model):
        tokens, _, labels, cu, _ = self.batch
        logits = model.logits(eager_hidden(model, tokens, cu))
        return {"heldout_reply_loss": round(F.cross_entropy(logits, labels, ignore_index=-1).item(), 4)}


def eager_hidden(model, ids, cu):
    """Forward pass without compilation, because lengths differ from call to call."""
    import model as definition

    compiled = model.before, model.after
    model.before, model.after = definition.before_attention, definition.after_attention
    positions = torch.cat([torch.arange(n, device=ids.device) for n in (cu[1:] - cu[:-1]).tolist()])
    hidden = model.hidden(ids, positions, cu, int((cu[1:] - cu[:-1]).max()))
    model.before, model.after = compiled
    return hidden
