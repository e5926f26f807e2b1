"""Muon for the matrices of the blocks, AdamW for the embedding and the norms.

Muon keeps a momentum and applies the nearest orthogonal matrix (five Newton-Schulz steps). Matrices of the same shape are
stacked and processed together.
"""
import torch


def orthogonal(stack):
    """stack [k, m, n] -> approximately U V^T of each."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = stack.bfloat16()
    wide = x.size(-2) <= x.size(-1)
    if not wide:
        x = x.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        gram = x @ x.mT
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return x if wide else x.mT


class Muon:
    def __init__(self, parameters, lr=0.02, momentum=0.95, weight_decay=0.05):
        self.lr, self.momentum, self.weight_decay = lr, momentum, weight_decay
        shapes = {}
        for p in parameters:
            shapes.setdefault(tuple(p.shape), []).append(p)
        self.groups = [(group, torch.zeros(len(group), *shape, device=group[0].device)) for shape, group in shapes.items()]

    @torch.no_grad()
    def step(self, scale):
        for group, buffer in self.groups:
            gradient = torch.stack([p.grad for p in group])
            buffer.lerp_(gradient, 1 - self.momentum)
            update = orthogonal(gradient.lerp(buffer, self.momentum)).float()
            rate = self.lr * scale
            update *= max(1.0, update.size(-2) / update.size(-1)) ** 0.5
            torch._foreach_mul_(group, 1 - rate * self.weight_decay)
            torch._foreach_add_(group, list(update.unbind(0)), alpha=-rate)


def make_optimizers(model, muon_lr, adam_lr):
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    others = [p for n, p in model.named_parameters() if p.ndim != 2 or "embed" in n]
    muon = Muon(matrices, lr=muon_lr)
    adam = torch.optim.AdamW(others, lr=adam_lr, betas=(0.9, 0.95), weight_decay=0.0, fused=True)
    return muon, adam
