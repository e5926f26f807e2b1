"""The socket to the server: one JSON object per line, in both directions. And what ends this process.

A thread reads the socket, so that a cancellation arrives and a ping is answered while a pass runs. When the server or
whoever started this process is gone, it ends at once: nobody could use its result, and it must not hold a GPU.
"""

import ctypes
import hmac
import json
import os
import queue
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping

# Not 0: torchrun ends the other ranks only when one fails.
GONE = 1
# A server pings every 10 seconds. One that is silent for so long is gone, even if the network did not say so.
SILENCE_SECONDS = 120
# How often a process looks whether its parent is still there, where the kernel does not tell it.
PARENT_SECONDS = 2


class Channel:
    """Messages from the server: limits, train, pass and update {id, task}, cancel {id}, ping.

    To it: step, done, failed, cancelled, pong. Before all that, both prove that they know a secret: hello {challenge} to
    the server, challenge {challenge, proof} from it, proof {proof, protocol} to it.
    """

    def __init__(self, where: str):
        """`where`: the path of the server's Unix socket, or HOST:PORT."""
        if where.startswith("/"):
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(where)
        else:
            host, _, port = where.rpartition(":")
            self._socket = socket.create_connection((host.strip("[]"), int(port)))
        self._socket.settimeout(SILENCE_SECONDS)
        self._lines = self._socket.makefile("r", encoding="utf8")
        self._lock = threading.Lock()
        self._cancelled: int | None = None
        self.tasks: queue.Queue[dict] = queue.Queue()

    def start(self, secret: str, about: dict) -> None:
        """`about`: what the server should know of this process."""
        challenge = secrets.token_hex(32)
        self.send({"type": "hello", "challenge": challenge})
        line = self._lines.readline()
        if not line:
            sys.exit("the server hung up: perhaps it has another key, or is another server")
        answer = json.loads(line)
        given = answer["challenge"]
        if not hmac.compare_digest(answer["proof"], proof_of(secret, "server", challenge, given)):
            sys.exit("whoever listens at the server's address does not know the key")
        self.send({"type": "proof", "proof": proof_of(secret, "trainer", challenge, given), **about})
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, message: dict) -> None:
        line = json.dumps(message, allow_nan=False, separators=(",", ":")) + "\n"
        with self._lock:
            try:
                self._socket.sendall(line.encode())
            except OSError:
                os._exit(GONE)

    def cancelled(self, task: int) -> bool:
        return self._cancelled == task

    def _read(self) -> None:
        try:
            for line in self._lines:
                message = json.loads(line)
                if message["type"] in ("limits", "train", "pass", "update"):
                    self.tasks.put(message)
                elif message["type"] == "cancel":
                    self._cancelled = message["id"]
                elif message["type"] == "ping":
                    self.send({"type": "pong"})
        except (OSError, ValueError):
            pass
        os._exit(GONE)


def secret_of(environment: Mapping[str, str]) -> str:
    """What only the server and the processes that it has started know; over a network, also the operator's key."""
    key = ""
    if file := environment.get("FLYWHEEL_TRAINER_KEY_FILE"):
        with open(file, encoding="utf8") as text:
            key = text.read().strip()
    return f"{environment.get('FLYWHEEL_TRAINER_NONCE', '')}:{key}"


def proof_of(secret: str, role: str, trainer: str, server: str) -> str:
    """`role`: whose proof it is. `trainer`, `server`: their challenges."""
    return hmac.new(secret.encode(), f"{role} {trainer} {server}".encode(), "sha256").hexdigest()


def die_with_parent() -> None:
    """torchrun puts every rank into a session of its own, so killing its process group leaves them alive."""
    parent = os.getppid()
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
        if parent == 1 and _orphaned():
            os._exit(GONE)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_SECONDS)
        os._exit(GONE)

    threading.Thread(target=watch, daemon=True).start()


def _orphaned() -> bool:
    """Whether torchrun ended before this process got here. In a container torchrun itself may be process 1."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return False
    with open("/proc/1/cmdline", encoding="utf8") as file:
        return "torch" not in file.read()
