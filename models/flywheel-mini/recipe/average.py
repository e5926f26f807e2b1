"""The plain average of two sets of weights of one model: python3 average.py FIRST SECOND OUT [SHARE]

All three are model.safetensors files in bfloat16; the average is computed in float32. SHARE, default 0.5, is the second one's.
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


def main(first, second, out, share=0.5):
    (names, start, a), (others, _, b) = load(first), load(second)
    averaged = bytearray(a)
    if names.keys() != others.keys():
        raise SystemExit("the two files do not hold the same tensors")
    for name in names.keys() - {"__metadata__"}:
        entry, other = names[name], others[name]
        if (entry["dtype"], entry["shape"]) != ("BF16", other["shape"]) or other["dtype"] != "BF16":
            raise SystemExit(f"{name}: two bfloat16 tensors of one shape are needed")
        mean = (1 - share) * tensor(a, entry) + share * tensor(b, other)
        averaged[slice(*entry["data_offsets"])] = bfloat16(mean).tobytes()
    with open(out, "wb") as file:
        file.write(start + averaged)


if __name__ == "__main__":
    main(*sys.argv[1:4], *(float(share) for share in sys.argv[4:5]))
