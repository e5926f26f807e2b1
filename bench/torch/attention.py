"""Three ways to compute attention over rows with shared prompts, forward and backward, on a GPU.

    PYTHONPATH=trainer python bench/torch/attention.py --rows 4096,16384,32768 --head-dims 64,128

A: flex attention with a block mask, as the package does. B: FlashAttention over sequences that share nothing, so a
shared prompt is there once for every reply. C: FlashAttention on the rows of A: every segment on its own, the replies
of a family once more over their prompt, and both parts merged by their log-sum-exp. Two workloads: sequences of 1,024
tokens alone, where C is B, and families of 8 replies of 256 tokens to a prompt of 1,024. One JSON object per case:
milliseconds, and how far B and C are from A. --check runs C on a processor beside plain attention.
"""

import argparse
import json
import math
import time

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention

from flywheel_trainer.attention import RowMask
from flywheel_trainer.batch import Rows, Segment

aten = torch.ops.aten
CAUSAL, FULL = True, False


def starts(lengths: list[int], device) -> Tensor:
    return torch.tensor([0, *lengths], dtype=torch.int32, device=device).cumsum(0, dtype=torch.int32)


class Layout:
    """Rows ordered as all prompts, then all replies, so that both parts of C are slices."""

    def __init__(self, prompts: list[int], replies: list[list[int]], device):
        """Lengths; `replies` by prompt. A prompt without replies is a sequence of its own."""
        self.lengths = [*prompts, *(length for family in replies for length in family)]
        self.shared = sum(prompts) if any(replies) else 0
        self.segments = starts(self.lengths, device)
        self.longest = max(self.lengths)
        if self.shared:
            self.families = starts([sum(family) for family in replies], device)
            self.prompts = starts(prompts, device)
            self.longest_family, self.longest_prompt = max(sum(family) for family in replies), max(prompts)
        owner = [-1] * len(prompts) + [index for index, family in enumerate(replies) for _ in family]
        self.rows = Rows()
        for length, parent in zip(self.lengths, owner, strict=True):
            position = prompts[parent] if parent >= 0 else 0
            self.rows.segments.append(Segment(len(self.rows.ids), length, position, parent))
            self.rows.ids.extend([0] * length)
            self.rows.positions.extend(range(position, position + length))


def flash(q, k, v, cu_q, cu_k, max_q, max_k, causal, scale) -> tuple[Tensor, Tensor]:
    """[rows, heads, size] → output and log-sum-exp [heads, rows]."""
    out, lse, *_ = aten._flash_attention_forward(q, k, v, cu_q, cu_k, max_q, max_k, 0.0, causal, False, scale=scale)
    return out, lse


def flash_backward(grad, q, k, v, out, lse, cu_q, cu_k, max_q, max_k, causal, scale) -> tuple[Tensor, Tensor, Tensor]:
    seed = torch.zeros(2, dtype=torch.uint64, device=q.device)
    return aten._flash_attention_backward(
        grad, q, k, v, out, lse, cu_q, cu_k, max_q, max_k, 0.0, causal, seed, torch.empty(0, device=q.device), scale=scale
    )


def plain(q, k, v, cu_q, cu_k, max_q, max_k, causal, scale) -> tuple[Tensor, Tensor]:
    """The same as `flash`, sequence by sequence, for processors."""
    outs, lses = [], []
    repeat = q.shape[1] // k.shape[1]
    for i in range(len(cu_q) - 1):
        rows, keys = slice(cu_q[i], cu_q[i + 1]), slice(cu_k[i], cu_k[i + 1])
        scores = torch.einsum("qhd,khd->hqk", q[rows], k[keys].repeat_interleave(repeat, 1)) * scale
        if causal:
            scores = scores.masked_fill(torch.ones_like(scores[0], dtype=torch.bool).triu(1), -math.inf)
        lses.append(scores.logsumexp(-1))
        outs.append(torch.einsum("hqk,khd->qhd", scores.softmax(-1), v[keys].repeat_interleave(repeat, 1)))
    return torch.cat(outs), torch.cat(lses, 1)


def plain_backward(grad, q, k, v, out, lse, cu_q, cu_k, max_q, max_k, causal, scale) -> tuple[Tensor, Tensor, Tensor]:
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    groups, repeat = k.shape[1], q.shape[1] // k.shape[1]
    for i in range(len(cu_q) - 1):
        rows, keys = slice(cu_q[i], cu_q[i + 1]), slice(cu_k[i], cu_k[i + 1])
        wide_k, wide_v = k[keys].repeat_interleave(repeat, 1), v[keys].repeat_interleave(repeat, 1)
        p = (torch.einsum("qhd,khd->hqk", q[rows], wide_k) * scale - lse[:, rows, None]).exp()
        if causal:
            p = p.masked_fill(torch.ones_like(p[0], dtype=torch.bool).triu(1), 0.0)
        delta = (grad[rows] * out[rows]).sum(-1).T[..., None]
        ds = p * (torch.einsum("qhd,khd->hqk", grad[rows], wide_v) - delta) * scale
        dq[rows] = torch.einsum("hqk,khd->qhd", ds, wide_k)
        dk[keys] += torch.einsum("hqk,qhd->khd", ds, q[rows]).unflatten(1, (groups, repeat)).sum(2)
        dv[keys] += torch.einsum("hqk,qhd->khd", p, grad[rows]).unflatten(1, (groups, repeat)).sum(2)
    return dq, dk, dv


class Merged(torch.autograd.Function):
    """C. The backward pass of each part gets the merged output and log-sum-exp, which makes its probabilities right."""

    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor, layout: Layout, scale: float) -> Tensor:
        run = flash if q.is_cuda else plain
        out, lse = run(q, k, v, layout.segments, layout.segments, layout.longest, layout.longest, CAUSAL, scale)
        if layout.shared:
            n = layout.shared
            parts = (layout.families, layout.prompts, layout.longest_family, layout.longest_prompt, FULL, scale)
            other, other_lse = run(q[n:], k[:n], v[:n], *parts)
            own_lse = lse[:, n:]
            both = torch.logaddexp(own_lse, other_lse)
            weigh = lambda part: (part - both).exp().T[..., None].to(out.dtype)
            out = torch.cat((out[:n], out[n:] * weigh(own_lse) + other * weigh(other_lse)))
            lse = torch.cat((lse[:, :n], both), 1)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.layout, ctx.scale = layout, scale
        return out

    @staticmethod
    def backward(ctx, grad: Tensor):
        q, k, v, out, lse = ctx.saved_tensors
        layout, scale = ctx.layout, ctx.scale
        run = flash_backward if q.is_cuda else plain_backward
        whole = (layout.segments, layout.segments, layout.longest, layout.longest, CAUSAL, scale)
        dq, dk, dv = run(grad.contiguous(), q, k, v, out, lse, *whole)
        if layout.shared:
            n = layout.shared
            parts = (layout.families, layout.prompts, layout.longest_family, layout.longest_prompt, FULL, scale)
            own = (grad[n:].contiguous(), q[n:], k[:n], v[:n], out[n:], lse[:, n:].contiguous())
            dq_more, dk_more, dv_more = run(*own, *parts)
            dq = torch.cat((dq[:n], dq[n:] + dq_more))
            dk = torch.cat((dk[:n] + dk_more, dk[n:]))
            dv = torch.cat((dv[:n] + dv_more, dv[n:]))
        return dq, dk, dv, None, None


def inputs(rows: int, heads: int, groups: int, size: int, dtype, device) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator(device).manual_seed(5)
    make = lambda count: torch.randn(rows, count, size, generator=generator, device=device, dtype=torch.float32).to(dtype)
    q, k, v = (make(count).requires_grad_(True) for count in (heads, groups, groups))
    return q, k, v, make(heads)


def check() -> None:
    """C beside flex attention's definition, in float64 on a processor."""
    layout = Layout([5, 9], [[3, 4], [2, 6, 1]], "cpu")
    count = sum(layout.lengths)
    q, k, v, grad = inputs(count, 4, 2, 8, torch.float64, "cpu")
    scale = 8**-0.5
    out = Merged.apply(q, k, v, layout, scale)
    found = torch.autograd.grad(out, (q, k, v), grad)
    sees = torch.zeros(count, count, dtype=torch.bool)
    for segment in layout.rows.segments:
        own = slice(segment.row, segment.row + segment.count)
        sees[own, own] = torch.ones(segment.count, segment.count, dtype=torch.bool).tril()
        if segment.parent >= 0:
            parent = layout.rows.segments[segment.parent]
            sees[own, parent.row : parent.row + parent.count] = True
    scores = torch.einsum("qhd,khd->hqk", q, k.repeat_interleave(2, 1)) * scale
    wanted = torch.einsum("hqk,khd->qhd", scores.masked_fill(~sees, -math.inf).softmax(-1), v.repeat_interleave(2, 1))
    gradients = torch.autograd.grad(wanted, (q, k, v), grad)
    off = [float((a - b).detach().abs().max()) for a, b in zip((out, *found), (wanted, *gradients), strict=True)]
    print(json.dumps({"check": "C beside plain attention", "off": off, "ok": max(off) < 1e-9}), flush=True)


def milliseconds(run, steps: int) -> float:
    for _ in range(2):
        run()
    torch.cuda.synchronize()
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(steps)]
    for first, last in events:
        first.record()
        run()
        last.record()
    torch.cuda.synchronize()
    return sorted(first.elapsed_time(last) for first, last in events)[steps // 2]


def measure(kind: str, rows: int, size: int, steps: int) -> dict:
    device, dtype, scale = "cuda", torch.bfloat16, size**-0.5
    heads, groups = (14, 2) if size == 64 else (32, 8)
    if kind == "shared":
        families, rest = divmod(rows, 3072)
        prompts, replies = [1024] * families, [[256] * 8 for _ in range(families)]
        if rest:
            # one smaller family fills the rows
            prompts, replies = [*prompts, rest // 2], [*replies, [rest // 16] * 8]
        alone = [p + r for p, family in zip(prompts, replies) for r in family]
    else:
        prompts, replies = [1024] * (rows // 1024), [[] for _ in range(rows // 1024)]
        alone = prompts
    layout = Layout(prompts, replies, device)
    result: dict = {"kind": kind, "rows": rows, "head_dim": size, "heads": heads, "kv_heads": groups, "submitted": sum(alone)}
    q, k, v, grad = inputs(rows, heads, groups, size, dtype, device)
    leaves = (q, k, v)

    began = time.perf_counter()
    mask = RowMask(layout.rows, rows, {None}, torch.device(device), True).blocks[None]
    torch.cuda.synchronize()
    result["A_mask_ms"] = round(1000 * (time.perf_counter() - began), 1)
    compiled = torch.compile(flex_attention, dynamic=False)
    spread = lambda tensor: tensor.transpose(0, 1)[None]

    def a() -> Tensor:
        return compiled(spread(q), spread(k), spread(v), block_mask=mask, scale=scale, enable_gqa=True)[0].transpose(0, 1)

    def c() -> Tensor:
        return Merged.apply(q, k, v, layout, scale)

    def timed(name: str, run, grad_out: Tensor, wrt) -> tuple[Tensor, ...] | None:
        try:
            began = time.perf_counter()
            out = run()
            gradients = torch.autograd.grad(out, wrt, grad_out)
            torch.cuda.synchronize()
            result[f"{name}_first_s"] = round(time.perf_counter() - began, 1)
            with torch.no_grad():
                result[f"{name}_forward_ms"] = round(milliseconds(run, steps), 3)
            result[f"{name}_both_ms"] = round(milliseconds(lambda: torch.autograd.grad(run(), wrt, grad_out), steps), 3)
            return out.detach(), *gradients
        except Exception as error:  # the others still count
            result[f"{name}_error"] = f"{type(error).__name__}: {error}"[:200]
            return None

    with_a = timed("A", a, grad, leaves)
    with_c = timed("C", c, grad, leaves)
    if with_a and with_c:
        result["C_off"] = [float(f"{(x.float() - y.float()).norm() / y.float().norm():.2g}") for x, y in zip(with_c, with_a)]
    layout_b = Layout(alone, [[] for _ in alone], device)
    q, k, v, grad_b = inputs(sum(alone), heads, groups, size, dtype, device)
    timed("B", c_of(q, k, v, layout_b, scale), grad_b, (q, k, v))
    return result


def c_of(q: Tensor, k: Tensor, v: Tensor, layout: Layout, scale: float):
    return lambda: Merged.apply(q, k, v, layout, scale)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", default="4096,16384,32768")
    parser.add_argument("--head-dims", default="64,128")
    parser.add_argument("--kinds", default="shared,alone")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=150, help="no case starts after this long")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    check()
    if args.check:
        return
    began = time.monotonic()
    torch._dynamo.config.recompile_limit = 128
    for rows in (int(text) for text in args.rows.split(",")):
        for size in (int(text) for text in args.head_dims.split(",")):
            for kind in args.kinds.split(","):
                if time.monotonic() - began < args.seconds:
                    print(json.dumps(measure(kind, rows, size, args.steps)), flush=True)


if __name__ == "__main__":
    main()
