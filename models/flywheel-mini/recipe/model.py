"""The network: Qwen3 layout (pre-norm, grouped-query attention with normed queries and keys, SwiGLU, tied embeddings).

Parameter names are those of a Hugging Face checkpoint. A batch is one long row of tokens with many
documents. Attention never crosses a document, so nothing is padded. Weights are fp32, arithmetic is bf16.
"""
import torch
import torch.nn.functional as F
from torch import nn

CONFIG = {
    "vocab_size": 8192,
    "hidden_size": 384,
    "num_hidden_layers": 10,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "intermediate_size": 704,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "max_position_embeddings": 2048,
}
EPS, HEAD = CONFIG["rms_norm_eps"], CONFIG["head_dim"]


def rms_norm(x, weight):
    y = x.float()
    return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + EPS)).to(x.dtype) * weight.to(x.dtype)


def linear(x, weight):
    return F.linear(x, weight.to(x.dtype))


def rotate(x, cos, sin):
    """x [T, heads, d]; cos, sin [T, 1, d] in fp32."""
    half = x.shape[-1] // 2
    return (x * cos + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sin).to(x.dtype)


def before_attention(x, cos, sin, norm, wq, wk, wv, q_norm, k_norm):
    """x [T, d] -> q [T, heads, 64], k and v [T, groups, 64]."""
    y = rms_norm(x, norm)
    q = rms_norm(linear(y, wq).unflatten(-1, (-1, HEAD)), q_norm)
    k = rms_norm(linear(y, wk).unflatten(-1, (-1, HEAD)), k_norm)
    v = linear(y, wv).unflatten(-1, (-1, HEAD))
    return rotate(q, cos, sin), rotate(k, cos, sin), v


def after_attention(x, attended, wo, norm, gate, up, down):
    """attended [T, heads, 64] -> the block's output [T, d]."""
    x = x + linear(attended.flatten(-2), wo)
    y = rms_norm(x, norm)
    return x + linear(F.silu(linear(y, gate)) * linear(y, up), down)


def mean_loss(hidden, embedding, labels):
    """Mean negative log-likelihood over labels >= 0; hidden [T, d], labels [T]."""
    return F.cross_entropy(linear(hidden, embedding).float(), labels, ignore_index=-1)


class Norm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))


class Matrix(nn.Module):
    def __init__(self, inputs, outputs, zero=False):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(outputs, inputs) if zero else torch.randn(outputs, inputs) * inputs**-0.5)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        d, f, h = c["hidden_size"], c["intermediate_size"], c["head_dim"]
        heads, groups = c["num_attention_heads"] * h, c["num_key_value_heads"] * h
        self.self_attn = nn.ModuleDict(
            {"q_proj": Matrix(d, heads), "k_proj": Matrix(d, groups), "v_proj": Matrix(d, groups), "o_proj": Matrix(heads, d, zero=True), "q_norm": Norm(h), "k_norm": Norm(h)}
        )
        self.mlp = nn.ModuleDict({"gate_proj": Matrix(d, f), "up_proj": Matrix(d, f), "down_proj": Matrix(f, d, zero=True)})
        self.input_layernorm = Norm(d)
        self.post_attention_layernorm = Norm(d)

    def weights(self):
        a, m = self.self_attn, self.mlp
        front = [self.input_layernorm, a["q_proj"], a["k_proj"], a["v_proj"], a["q_norm"], a["k_norm"]]
        back = [a["o_proj"], self.post_attention_layernorm, m["gate_proj"], m["up_proj"], m["down_proj"]]
        return [part.weight for part in front], [part.weight for part in back]


class Body(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = nn.ModuleList([Block(c) for _ in range(c["num_hidden_layers"])])
        self.norm = Norm(c["hidden_size"])


class Mini(nn.Module):
    def __init__(self, attention, c=CONFIG):
        super().__init__()
        self.attention = attention
        self.model = Body(c)
        nn.init.normal_(self.model.embed_tokens.weight, std=0.02)
        places = torch.arange(c["max_position_embeddings"]).float()
        inverse = c["rope_theta"] ** -(torch.arange(0, c["head_dim"], 2).float() / c["head_dim"])
        angles = torch.outer(places, inverse).repeat(1, 2)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        self.before, self.after, self.mean_loss = before_attention, after_attention, mean_loss

    def hidden(self, tokens, positions, cu, longest):
        """tokens [T] -> normed hidden states [T, d] in bf16."""
        x = self.model.embed_tokens(tokens).to(torch.bfloat16)
        cos, sin = self.cos[positions].unsqueeze(1), self.sin[positions].unsqueeze(1)
        for layer in self.model.layers:
            front, back = layer.weights()
            q, k, v = self.before(x, cos, sin, *front)
            x = self.after(x, self.attention(q, k, v, cu, longest), *back)
        return rms_norm(x, self.model.norm.weight)

    def loss(self, batch):
        tokens, positions, labels, cu, longest = batch
        return self.mean_loss(self.hidden(tokens, positions, cu, longest), self.model.embed_tokens.weight, labels)

    def logits(self, hidden):
        return linear(hidden, self.model.embed_tokens.weight).float()

    def compile_parts(self):
        """Compiles the halves of a block once. They take the weights as arguments, so all blocks share them."""
        self.before = torch.compile(before_attention, dynamic=False)
        self.after = torch.compile(after_attention, dynamic=False)
        self.mean_loss = torch.compile(mean_loss, dynamic=False)


def parameters_of(model):
    return sum(p.numel() for p in model.parameters())
