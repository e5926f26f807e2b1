"""The socket to the server: frames of a JSON header and raw arrays, in both directions. And what ends this process.

A thread reads the socket, so that a ping is answered while a step runs. Whatever else arrives waits in `commands` for
the step loop. When the server is gone this process ends at once: it must not hold a GPU for nobody.
"""

import ctypes
import json
import os
import queue
import signal
import socket
import struct
import sys
import threading

import torch
from torch import Tensor

GONE, BROKEN = 0, 2
# A server pings every 10 seconds. One that is silent for so long is gone.
SILENCE_SECONDS = 120
MOST_HEADER, MOST_TAIL = 2**24, 2**28
SIZES = struct.Struct("<II")
TYPES = {"i32": torch.int32, "u32": torch.int32, "f32": torch.float32, "u8": torch.uint8}
NAMES = {torch.int32: "i32", torch.float32: "f32", torch.uint8: "u8"}


class BrokenFrame(Exception):
    """The server broke the protocol."""


def require(met: bool, what: str) -> None:
    """What a frame must be, beyond its form: a wrong index would be a wrong place in a GPU's memory."""
    if not met:
        raise BrokenFrame(what)


class Frame:
    """A message: its header, and its arrays as tensors on the CPU. u32 arrays are int64 here."""

    def __init__(self, header: dict, arrays: dict[str, Tensor]):
        self.header, self.arrays = header, arrays

    @property
    def type(self) -> str:
        return self.header["type"]

    def ints(self, name: str) -> list[int]:
        return self.arrays[name].tolist()


def parse(header: bytes, tail: bytearray) -> Frame:
    """Checks everything that would make a later access go wrong."""
    try:
        fields = json.loads(header)
        listed = fields.pop("arrays", [])
        if not isinstance(fields["type"], str):
            raise BrokenFrame("a frame has no type")
        arrays, end = {}, 0
        for name, kind, shape, offset in listed:
            count = 1
            for size in shape:
                if not isinstance(size, int) or size < 0:
                    raise BrokenFrame(f"array {name} has a size that is none")
                count *= size
            dtype = TYPES[kind]
            if name in arrays or offset % 8 != 0 or offset < end or offset + count * dtype.itemsize > len(tail):
                raise BrokenFrame(f"array {name} does not lie where it may")
            end = offset + count * dtype.itemsize
            array = torch.frombuffer(tail, dtype=dtype, count=count, offset=offset) if count else torch.empty(0, dtype=dtype)
            arrays[name] = (array.long() & 0xFFFFFFFF if kind == "u32" else array).view(shape)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BrokenFrame(f"a frame cannot be read: {error!r}") from error
    return Frame(fields, arrays)


def encode(type: str, fields: dict, arrays: dict[str, Tensor]) -> bytes:
    """Arrays are int32, float32 or uint8. int64 is written as u32."""
    listed, parts, at = [], [], 0
    for name, array in arrays.items():
        kind = "u32" if array.dtype == torch.int64 else NAMES[array.dtype]
        data = as_bytes(array.to(torch.int32) if kind == "u32" else array)
        listed.append([name, kind, list(array.shape), at])
        parts += [data, b"\0" * (-len(data) % 8)]
        at += len(data) + len(parts[-1])
    header = {"type": type, **fields, **({"arrays": listed} if listed else {})}
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    return b"".join([SIZES.pack(len(text), at), text, *parts])


def as_bytes(array: Tensor) -> bytes:
    """Without numpy. The memory stays alive while it is copied."""
    array = array.contiguous()
    return ctypes.string_at(array.data_ptr(), array.nbytes)


class Channel:
    def __init__(self, path: str):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._socket.settimeout(SILENCE_SECONDS)
        self._lock = threading.Lock()
        self.commands: queue.SimpleQueue[Frame] = queue.SimpleQueue()

    def receive(self) -> Frame:
        """The next frame. Ends the process when the server is gone or breaks the protocol."""
        try:
            header_bytes, tail_bytes = SIZES.unpack(self._exactly(SIZES.size))
            if not 2 <= header_bytes <= MOST_HEADER or tail_bytes > MOST_TAIL:
                raise BrokenFrame(f"a frame of {header_bytes} + {tail_bytes} bytes")
            header = self._exactly(header_bytes)
            return parse(bytes(header), self._exactly(tail_bytes))
        except OSError:
            os._exit(GONE)
        except BrokenFrame as error:
            end(BROKEN, f"the server broke the protocol: {error}")

    def start(self) -> None:
        threading.Thread(target=self._read, daemon=True, name="socket").start()

    def send(self, type: str, fields: dict | None = None, arrays: dict[str, Tensor] | None = None) -> None:
        frame = encode(type, fields or {}, arrays or {})
        with self._lock:
            try:
                self._socket.sendall(frame)
            except OSError:
                os._exit(GONE)

    def _read(self) -> None:
        while True:
            frame = self.receive()
            if frame.type == "ping":
                self.send("pong")
            else:
                self.commands.put(frame)

    def _exactly(self, count: int) -> bytearray:
        data = bytearray(count)
        view, at = memoryview(data), 0
        while at < count:
            read = self._socket.recv_into(view[at:])
            if read == 0:
                os._exit(GONE)
            at += read
        return data


def end(code: int, last_words: str) -> None:
    """Ends the process from any thread. The server keeps what is written last."""
    print(last_words, file=sys.stderr, flush=True)
    os._exit(code)


def die_with_parent() -> None:
    if sys.platform == "linux":
        parent = os.getppid()
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(GONE)
