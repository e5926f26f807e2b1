"""Turns token files into training batches: documents of several files, each repeated some times, in one shuffled stream.

A batch is one row of `size` tokens. Documents are laid end to end. Labels never cross from one to the next.
"""
import os

import numpy as np
import torch


class Stream:
    """plan: list of (name, epochs, learn_all). Everything is on the GPU, and a batch is one gather."""

    def __init__(self, folder, plan, size, seed, device="cuda"):
        self.size, self.device = size, device
        tokens, learn, first, length, every = [], [], [], [], []
        offset = 0
        rng = np.random.default_rng(seed)
        for name, epochs, learn_all in plan:
            data = np.load(os.path.join(folder, name + ".npz"))
            starts = data["starts"]
            count = len(starts) - 1
            # Whole passes plus a random part of one.
            chosen = np.concatenate([np.arange(count)] * int(epochs) + [rng.permutation(count)[: int((epochs % 1) * count)]])
            tokens.append(data["tokens"])
            learn.append(data["learn"])
            first.append(starts[:-1][chosen] + offset)
            length.append(np.diff(starts)[chosen])
            every.append(np.full(len(chosen), learn_all))
            offset += len(data["tokens"])
        order = rng.permutation(sum(len(part) for part in first))
        self.length = np.concatenate(length)[order]
        self.bounds = np.concatenate([[0], np.cumsum(self.length)])
        self.first = torch.from_numpy(np.concatenate(first)[order]).to(device)
        self.lengths = torch.from_numpy(self.length).to(device)
        self.every = torch.from_numpy(np.concatenate(every)[order]).to(device)
        self.begin = torch.from_numpy(self.bounds[:-1]).to(device)
        self.tokens = torch.from_numpy(np.concatenate(tokens).astype(np.int32)).to(device)
        self.learn = torch.from_numpy(np.concatenate(learn).astype(bool)).to(device)
        self.total = int(self.bounds[-1])
        self.steps = self.total // size

    def batch(self, step):
        """tokens [size], positions [size], labels [size] (-1 = none), cu [documents + 1], longest document."""
        low, high = step * self.size, (step + 1) * self.size
        a = int(np.searchsorted(self.bounds, low, side="right")) - 1
        b = int(np.searchsorted(self.bounds, high, side="left"))
        cuts = np.clip(self.bounds[a : b + 1], low, high) - low
        counts = torch.from_numpy(np.diff(cuts)).to(self.device, non_blocking=True)
        documents = torch.arange(a, b, device=self.device).repeat_interleave(counts, output_size=self.size)
        inside = torch.arange(low, high, device=self.device) - self.begin[documents]
        source = self.first[documents] + inside
        more = inside + 1 < self.lengths[documents]
        after = torch.where(more, source + 1, source)
        wanted = more & (self.learn[after] | self.every[documents])
        labels = torch.where(wanted, self.tokens[after].long(), -1)
        cu = torch.from_numpy(cuts.astype(np.int32)).to(self.device, non_blocking=True)
        return self.tokens[source].long(), inside, labels, cu, int(np.diff(cuts).max())
