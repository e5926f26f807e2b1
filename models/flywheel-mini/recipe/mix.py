"""Computes a weighted sum of several sets of weights of one model: python3 mix.py OUT SHARE*FILE SHARE*FILE ...

All are model.safetensors files in bfloat16 with the same tensors. The sum is computed in float32. Shares should add up to 1
and may be negative: 0.5*A -0.3*B 0.8*C is the middle of A and B, plus 0.8 of the way from B to C.
"""
import json
import struct
import sys

import numpy as np


def load(path):
    """Header (name -> dtype, shape, offsets), the header's bytes, the tensors' bytes."""
    data = open(path, "rb").read()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:begin]), data[:begin], data[begin:]


def tensor(data, entry):
    begin, end = entry["data_offsets"]
    return (np.frombuffer(data[begin:end], "<u2").astype(np.uint32) << 16).view(np.float32)


def bfloat16(values):
    """Rounded to nearest, ties to even."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


def described(names, name):
    return names[name]["dtype"], names[name]["shape"]


def main(out, *terms):
    parts = [(float(share), load(path)) for share, path in (term.split("*", 1) for term in terms)]
    names, start, first = parts[0][1]
    mixed = bytearray(first)
    for name in names.keys() - {"__metadata__"}:
        for _, (others, _, _) in parts:
            if name not in others or described(others, name) != ("BF16", names[name]["shape"]) or others.keys() != names.keys():
                raise SystemExit(f"{name}: bfloat16 tensors of one shape are needed in every file")
        total = sum(share * tensor(data, others[name]) for share, (others, _, data) in parts)
        mixed[slice(*names[name]["data_offsets"])] = bfloat16(total).tobytes()
    with open(out, "wb") as file:
        file.write(start + mixed)


if __name__ == "__main__":
    main(*sys.argv[1:])
