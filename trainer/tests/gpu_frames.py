"""Reads what a server sent, byte for byte, then the same with bytes changed: a frame is read or refused, nothing else.

Arguments: a file with one frame, and a seed. Prints what the frame holds, and how many changed ones were refused.
"""

import json
import random
import sys

from flywheel_gpu.channel import SIZES, BrokenFrame, Frame, encode, parse


def frame_of(data: bytes) -> Frame:
    header, tail = SIZES.unpack_from(data)
    assert len(data) == SIZES.size + header + tail
    return parse(data[SIZES.size : SIZES.size + header], bytearray(data[SIZES.size + header :]))


def main(path: str, seed: int) -> None:
    data, dice, refused = open(path, "rb").read(), random.Random(seed), 0
    frame = frame_of(data)
    arrays = {name: array.tolist() for name, array in frame.arrays.items()}
    again = frame_of(encode(frame.type, {k: v for k, v in frame.header.items() if k != "type"}, frame.arrays))
    assert again.header == frame.header and {n: a.tolist() for n, a in again.arrays.items()} == arrays
    header, _ = SIZES.unpack_from(data)
    changes = 2000
    for _ in range(changes):
        changed = bytearray(data)
        for _ in range(dice.randrange(1, 4)):
            changed[dice.randrange(SIZES.size, SIZES.size + header)] = dice.randrange(32, 127)
        try:
            for array in frame_of(bytes(changed)).arrays.values():
                array.sum()
        except BrokenFrame:
            refused += 1
    print(json.dumps({"header": frame.header, "arrays": arrays, "refused": refused, "changes": changes}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
