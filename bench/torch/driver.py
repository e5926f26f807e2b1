"""Plays the server for a trainer process: starts it, gives it tasks over its socket, ends it. Uses no GPU itself."""

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../trainer")
sys.path.insert(0, PACKAGE)
from flywheel_trainer.channel import proof_of  # noqa: E402

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=1", "-m", "flywheel_trainer"]
PLAIN = [sys.executable, "-m", "flywheel_trainer"]


class TrainerProcess:
    def __init__(self, command: list[str], env: dict[str, str] | None = None):
        self.folder = tempfile.mkdtemp()
        self.nonce = secrets.token_hex(16)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{self.folder}/socket")
        self._listener.listen()
        own = {
            "PYTHONPATH": PACKAGE, "FLYWHEEL_TRAINER_SOCKET": f"{self.folder}/socket", "FLYWHEEL_TRAINER_NONCE": self.nonce,
            "FLYWHEEL_TRAINER_KEY_FILE": "",
            "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error",
        }
        self._log = open(f"{self.folder}/log", "w+", encoding="utf8")
        self._process = subprocess.Popen(
            command, env={**os.environ, **own, **(env or {})}, start_new_session=True, stdout=self._log, stderr=self._log
        )
        self._connection: socket.socket | None = None

    def train(self, task: dict, seconds: float = 300) -> tuple[list[dict], dict]:
        """The metrics of every step and the result. Raises when the process ends or the task fails."""
        if self._connection is None:
            self._listener.settimeout(seconds)
            self._connection, _ = self._listener.accept()
            self._lines = self._connection.makefile("r", encoding="utf8")
            self._greet()
        self._connection.sendall((json.dumps({"type": "train", "id": 1, "task": task}) + "\n").encode())
        steps = []
        for line in self._lines:
            message = json.loads(line)
            if message["type"] == "step":
                steps.append(message["metrics"])
            elif message["type"] == "done":
                return steps, message["result"]
            else:
                raise RuntimeError(message.get("message", message["type"]))
        self._log.seek(0)
        raise RuntimeError("the trainer closed its connection: " + self._log.read()[-1500:])

    def _greet(self) -> None:
        """As the server does (src/training/process/command-process.ts)."""
        theirs, ours = json.loads(self._lines.readline())["challenge"], secrets.token_hex(32)
        challenge = {"type": "challenge", "challenge": ours, "proof": proof_of(f"{self.nonce}:", "server", theirs, ours)}
        self._connection.sendall((json.dumps(challenge) + "\n").encode())
        if json.loads(self._lines.readline())["proof"] != proof_of(f"{self.nonce}:", "trainer", theirs, ours):
            raise RuntimeError("it does not know the nonce")

    def processes(self) -> list[int]:
        """Everything that was started for it and lives: each carries the nonce in its environment."""
        found = []
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and self.nonce.encode() in open(f"/proc/{name}/environ", "rb").read():
                    found.append(int(name))
            except OSError:
                continue
        return found

    def hang_up(self) -> None:
        """As when the server dies."""
        for open_socket in (self._connection, self._listener):
            if open_socket is not None:
                try:
                    open_socket.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                open_socket.close()

    def close(self) -> None:
        """As the server does: asks it to end, and kills its process group when it does not."""
        for number, seconds in ((signal.SIGTERM, 5), (signal.SIGKILL, 30)):
            try:
                os.killpg(self._process.pid, number)
            except ProcessLookupError:
                break
            try:
                self._process.wait(seconds)
                break
            except subprocess.TimeoutExpired:
                continue
        self.hang_up()
        shutil.rmtree(self.folder, ignore_errors=True)

    def wait_until_gone(self, seconds: float) -> list[int]:
        """What still lives after this long."""
        due = time.monotonic() + seconds
        while time.monotonic() < due:
            self._process.poll()
            left = self.processes()
            if not left:
                return []
            time.sleep(0.2)
        return left
