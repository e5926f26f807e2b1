"""Attention inside the documents of one long row, with the first PyTorch kernel that works and is correct.

All take q [T, heads, d], k and v [T, groups, d] in bf16, cu (int32 document bounds) and the longest document's length.
"""
import torch
import torch.nn.functional as F


def spread(q, k, v):
    repeat = q.shape[1] // k.shape[1]
    return q, k.repeat_interleave(repeat, dim=1), v.repeat_interleave(repeat, dim=1)


def flash(q, k, v, cu, longest):
    q, k, v = spread(q, k, v)
    return torch.ops.aten._flash_attention_forward(q, k, v, cu, cu, longest, longest, 0.0, True, False)[0]


def varlen(q, k, v, cu, longest):
    from torch.nn.attention.varlen import varlen_attn

    q, k, v = spread(q, k, v)
    try:
        return varlen_attn(q, k, v, cu, cu, longest, longest, is_causal=True)
    except TypeError:
        return varlen_attn(q, k, v, cu, cu, longest, longest, window_size=(-1, 0))


def nested(q, k, v, cu, longest):
    parts = [torch.nested.nested_tensor_from_jagged(t, cu.long()).transpose(1, 2) for t in spread(q, k, v)]
    return F.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2).values()


def reference(q, k, v, cu):
    """Exact and slow, in fp32. For checking the kernels."""
    q, k, v = (t.float().transpose(0, 1) for t in spread(q, k, v))
    places = torch.arange(q.shape[1], device=q.device)
    document = torch.searchsorted(cu[1:].long(), places, right=True)
    allowed = (places[:, None] >= places[None, :]) & (document[:, None] == document[None, :])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed).transpose(0, 1)


def choose():
    """The first kernel whose values and gradients agree with the reference."""
    generator = torch.Generator("cuda").manual_seed(0)
    cu = torch.tensor([0, 5, 133, 134, 200, 256], dtype=torch.int32, device="cuda")
    inputs = [torch.randn(256, heads, 64, generator=generator, device="cuda", dtype=torch.bfloat16) for heads in (6, 2, 2)]
    weight = torch.randn(256, 6, 64, generator=generator, device="cuda")

    def run(function):
        leaves = [t.clone().requires_grad_() for t in inputs]
        out = function(*leaves)
        (out.float() * weight).sum().backward()
        return [out.detach().float()] + [t.grad.float() for t in leaves]

    right = run(lambda q, k, v: reference(q, k, v, cu))
    for function in (flash, varlen, nested):
        try:
            got = run(lambda q, k, v: function(q, k, v, cu, 128))
        except Exception as error:  # a kernel may be missing in this build; try the next one
            print(f"attention: {function.__name__} is not usable ({type(error).__name__}: {str(error)[:200]})")
            continue
        worst = max(((a - b).abs().max() / b.abs().max()).item() for a, b in zip(got, right))
        print(f"attention: {function.__name__}, worst relative error {worst:.4f}")
        if worst < 0.03:
            return function
    raise RuntimeError("no attention kernel agrees with the reference")
