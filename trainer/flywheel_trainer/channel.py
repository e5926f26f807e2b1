"""The socket to the server: one JSON object per line, in both directions.

A thread reads it, so that a cancellation arrives and a ping is answered while a pass runs. When the server is gone the
process ends at once: nobody could use its result, and it must not hold a GPU.
"""

import json
import os
import queue
import socket
import threading


class Channel:
    """Messages from the server: limits, train, pass and update {id, task}, cancel {id}, ping. To it: hello, step, done, failed, cancelled, pong."""

    def __init__(self, path: str):
        """`path`: of the server's Unix socket."""
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._lock = threading.Lock()
        self._cancelled: int | None = None
        self.tasks: queue.Queue[dict] = queue.Queue()

    def start(self, hello: dict) -> None:
        self.send({"type": "hello", **hello})
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, message: dict) -> None:
        line = json.dumps(message, allow_nan=False, separators=(",", ":")) + "\n"
        with self._lock:
            try:
                self._socket.sendall(line.encode())
            except OSError:
                os._exit(0)

    def cancelled(self, task: int) -> bool:
        return self._cancelled == task

    def _read(self) -> None:
        try:
            for line in self._socket.makefile("r", encoding="utf8"):
                message = json.loads(line)
                if message["type"] in ("limits", "train", "pass", "update"):
                    self.tasks.put(message)
                elif message["type"] == "cancel":
                    self._cancelled = message["id"]
                elif message["type"] == "ping":
                    self.send({"type": "pong"})
        except (OSError, ValueError):
            pass
        os._exit(0)
