# The PyTorch side of `npm run bench:train`: the same LoRA training step in plain PyTorch, without transformers. It reads a
# checkpoint folder (Llama or Qwen 3 layout, safetensors) and trains LoRA on all seven linear layers of every layer, with
# AdamW and gradient clipping. It answers each JSON line on standard input with one JSON line:
#   {"sequences": 4, "length": 128, "steps": 3} -> {"tokens", "seconds", "cpu_seconds", "losses", "peak_bytes"}
# argv: folder, threads, rank.
import json
import math
import os
import resource
import struct
import sys
import time

import torch
import torch.nn.functional as F

DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def read_weights(folder):
    weights = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".safetensors") or name.startswith("adapter"):
            continue
        with open(os.path.join(folder, name), "rb") as file:
            size = struct.unpack("<Q", file.read(8))[0]
            header = json.loads(file.read(size))
            body = bytearray(file.read())
        for tensor, entry in header.items():
            if tensor == "__metadata__":
                continue
            start, end = entry["data_offsets"]
            flat = torch.frombuffer(body, dtype=DTYPES[entry["dtype"]], offset=start, count=(end - start) // DTYPES_SIZE[entry["dtype"]])
            weights[tensor] = flat.reshape(entry["shape"]).to(torch.float32).clone()
    return weights


DTYPES_SIZE = {"F32": 4, "F16": 2, "BF16": 2}


class Model:
    def __init__(self, folder, rank):
        with open(os.path.join(folder, "config.json")) as file:
            c = json.load(file)
        self.weights = read_weights(folder)
        self.layers = c["num_hidden_layers"]
        self.heads = c["num_attention_heads"]
        self.kv_heads = c.get("num_key_value_heads", self.heads)
        self.head_dim = c.get("head_dim") or c["hidden_size"] // self.heads
        self.eps = c["rms_norm_eps"]
        theta = c.get("rope_theta") or c["rope_parameters"]["rope_theta"]
        self.frequencies = 1 / theta ** (torch.arange(0, self.head_dim, 2, dtype=torch.float32) / self.head_dim)
        self.head = self.weights.get("lm_head.weight", self.weights["model.embed_tokens.weight"])
        self.scale = 16 / rank
        self.lora = {}
        generator = torch.Generator().manual_seed(7)
        for name, weight in self.weights.items():
            if not name.endswith("_proj.weight"):
                continue
            out, inputs = weight.shape
            a = (torch.rand(rank, inputs, generator=generator) * 2 - 1) / math.sqrt(inputs)
            self.lora[name] = (a.requires_grad_(), torch.zeros(out, rank).requires_grad_())

    def parameters(self):
        return [factor for pair in self.lora.values() for factor in pair]

    def linear(self, x, path):
        name = path + ".weight"
        a, b = self.lora[name]
        return F.linear(x, self.weights[name], self.weights.get(path + ".bias")) + F.linear(F.linear(x, a), b) * self.scale

    def norm(self, x, name):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weights[name + ".weight"]

    def rotate(self, x, cos, sin):
        left, right = x.chunk(2, -1)
        return torch.cat([left * cos - right * sin, right * cos + left * sin], -1)

    def attention(self, x, layer, cos, sin):
        b, t, _ = x.shape
        path = layer + "self_attn."
        q = self.linear(x, path + "q_proj").view(b, t, self.heads, self.head_dim)
        k = self.linear(x, path + "k_proj").view(b, t, self.kv_heads, self.head_dim)
        v = self.linear(x, path + "v_proj").view(b, t, self.kv_heads, self.head_dim).transpose(1, 2)
        if path + "q_norm.weight" in self.weights:
            q, k = self.norm(q, path + "q_norm"), self.norm(k, path + "k_norm")
        q, k = self.rotate(q.transpose(1, 2), cos, sin), self.rotate(k.transpose(1, 2), cos, sin)
        group = self.heads // self.kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(2, 3) / math.sqrt(self.head_dim)
            future = torch.ones(t, t, dtype=torch.bool).triu(1)
            y = scores.masked_fill(future, float("-inf")).softmax(-1) @ v
        return self.linear(y.transpose(1, 2).reshape(b, t, self.heads * self.head_dim), path + "o_proj")

    def loss(self, ids):
        x = F.embedding(ids, self.weights["model.embed_tokens.weight"])
        angles = torch.arange(ids.shape[1])[:, None] * self.frequencies
        cos, sin = angles.cos(), angles.sin()
        for index in range(self.layers):
            layer = f"model.layers.{index}."
            x = x + self.attention(self.norm(x, layer + "input_layernorm"), layer, cos, sin)
            y = self.norm(x, layer + "post_attention_layernorm")
            gate = F.silu(self.linear(y, layer + "mlp.gate_proj")) * self.linear(y, layer + "mlp.up_proj")
            x = x + self.linear(gate, layer + "mlp.down_proj")
        hidden = self.norm(x[:, :-1], "model.norm")
        logits = F.linear(hidden, self.head)
        return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


def token_at(sequence, position, vocabulary):
    """The same text as in bench/train/text.ts."""
    return 3 + (sequence * 7919 + position * 104729 + (position * position) % 977) % (vocabulary - 3)


def peak_bytes():
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main():
    folder, threads, rank = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(threads)
    model = Model(folder, rank)
    parameters = model.parameters()
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1)
    print(json.dumps({"torch": torch.__version__}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        b, t, steps = request["sequences"], request["length"], request["steps"]
        vocabulary = model.head.shape[0]
        ids = torch.tensor([[token_at(s, p, vocabulary) for p in range(t)] for s in range(b)])
        losses = []
        start, cpu = time.perf_counter(), time.process_time()
        for _ in range(steps):
            loss = model.loss(ids)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 0.1)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            losses.append(loss.item())
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
        answer = {"tokens": b * t * steps, "seconds": seconds, "cpu_seconds": cpu_seconds, "losses": losses, "peak_bytes": peak_bytes()}
        print(json.dumps(answer), flush=True)


main()
