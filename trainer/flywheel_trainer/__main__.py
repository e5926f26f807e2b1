"""One rank of the trainer: `torchrun -m flywheel_trainer`, or `python -m flywheel_trainer` for a single process.

Rank 0 talks to the server and hands tasks to the others. A rank ends with its parent, with its server, and with any
other rank: nothing may stay behind and hold a GPU.
"""

import errno
import os
import signal
import sys
import threading
import time
from datetime import timedelta

from .channel import GONE, Channel, die_with_parent, secret_of

if __name__ == "__main__":
    # before the imports that take seconds
    die_with_parent()

import torch
import torch._inductor.config as inductor_config
import torch.distributed as dist
import transformers
from torch.distributed.device_mesh import DeviceMesh

from . import PROTOCOL
from .adapter import AdapterError
from .batch import TooLong
from .check import longest, must_divide
from .model import ModelError, TrainableModel
from .task import Cancelled, Hooks, TaskError, World, run_task

# A rank may wait this long for the next task.
IDLE = timedelta(days=365)
# All ranks must be there after so long.
START = timedelta(minutes=10)
# How often a rank looks whether the process that holds the ranks together is still there.
STORE_SECONDS = 2
# Faults of the task itself. The process stays usable after them.
FAULTS = (AdapterError, ModelError, TaskError, TooLong)
DISK_FULL = "the server's disk is full"
NO_RUNS = "the torch trainer runs training jobs only; training runs need a server with --trainer onnx"
NO_ROOM = (
    "the base model does not fit the free memory of this GPU: end other programs that use it, "
    "or start the trainer with more processes, one per GPU"
)
OUT_OF_MEMORY = "the GPU has no memory left for this task: end other programs that use it, or train shorter sequences"


def main() -> None:
    # It reaches every process of a terminal. The server decides what becomes of the job.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    run()


def run() -> None:
    """Joins the other ranks and works until the server is gone."""
    where = os.environ.get("FLYWHEEL_TRAINER_ADDRESS") or os.environ.get("FLYWHEEL_TRAINER_SOCKET")
    if where is None:
        sys.exit("the server starts this program: it needs FLYWHEEL_TRAINER_SOCKET or FLYWHEEL_TRAINER_ADDRESS")
    if os.environ.get("FLYWHEEL_TRAINER_DETERMINISTIC") == "1":
        make_deterministic()
    world = join_world()
    device = pick_device()
    models = Models(device, world)
    if world.rank == 0:
        serve(Channel(where), world, device, models)
    else:
        follow(world, models)


def serve(channel: Channel, world: World, device: torch.device, models: "Models") -> None:
    channel.start(
        secret_of(os.environ),
        {
            "protocol": PROTOCOL,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "devices": [device_name(device)],
            "world": world.size,
        },
    )
    while True:
        message = channel.tasks.get()
        number, task = message["id"], message["task"]
        if message["type"] == "limits":
            # the other ranks are taken to have the same memory
            channel.send({"id": number, **limits_answer(task, device, models, world.size)})
            continue
        if message["type"] != "train":
            channel.send({"type": "failed", "id": number, "message": NO_RUNS})
            continue
        share(task, world)
        hooks = Hooks(
            on_step=lambda metrics: channel.send({"type": "step", "id": number, "metrics": metrics}),
            cancelled=lambda: channel.cancelled(number),
            model_for=models.get,
        )
        try:
            result = run_task(task, hooks, world)
            channel.send({"type": "done", "id": number, "result": result})
        except Cancelled:
            channel.send({"type": "cancelled", "id": number})
        except FAULTS as error:
            fail(channel, number, str(error), world)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            fail(channel, number, DISK_FULL, world)
        except torch.OutOfMemoryError:
            channel.send({"type": "failed", "id": number, "message": OUT_OF_MEMORY})
            os._exit(1)


def fail(channel: Channel, number: int, message: str, world: World) -> None:
    channel.send({"type": "failed", "id": number, "message": message})
    if world.size > 1:
        # other ranks may be in the middle of it
        os._exit(1)


def limits_answer(task: dict, device: torch.device, models: "Models", ranks: int) -> dict:
    try:
        loaded = models.held(task["baseModel"], task["weights"])
        return {"type": "done", "result": {"maxTrainedLength": longest(task, device, loaded, ranks)}}
    except ModelError as error:
        return {"type": "failed", "message": str(error)}


def follow(world: World, models: "Models") -> None:
    while True:
        task = share(None, world)
        hooks = Hooks(on_step=lambda _: None, cancelled=lambda: False, model_for=models.get)
        try:
            run_task(task, hooks, world)
        except Cancelled:
            continue


def share(task: dict | None, world: World) -> dict | None:
    """Rank 0's task, on every rank."""
    return world.gather(task)[0]


class Models:
    """The model of the last task stays loaded for the next one."""

    def __init__(self, device: torch.device, world: World):
        self._device, self._world = device, world
        self._held: tuple[tuple[str, str], TrainableModel] | None = None

    def held(self, folder: str, dtype: str) -> TrainableModel | None:
        return self._held[1] if self._held is not None and self._held[0] == (folder, dtype) else None

    def get(self, folder: str, dtype: str) -> TrainableModel:
        key = (folder, dtype)
        if self._held is None or self._held[0] != key:
            self._held = None
            self._held = (key, TrainableModel.load(folder, dtype, self._device, self._mesh(folder, dtype)))
        return self._held[1]

    def _mesh(self, folder: str, dtype: str) -> DeviceMesh | None:
        """The ranks, if they must share the base model because it does not fit one of them. All decide alike."""
        if not any(self._world.gather(must_divide(folder, dtype, self._device))):
            return None
        if self._world.size == 1:
            raise ModelError(NO_ROOM)
        return DeviceMesh.from_group(self._world.group, self._device.type)


def join_world() -> World:
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return World()
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    if not dist.is_initialized():
        dist.init_process_group(backend, timeout=START)
    end_with_the_store()
    # whoever waits for the next task waits in this group
    return World(dist.get_rank(), size, dist.new_group(timeout=IDLE, backend=backend))


def end_with_the_store() -> None:
    """torchrun on the first machine, or rank 0, holds the ranks together. The others may wait in vain when it is gone."""
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = dist.TCPStore(host, port, is_master=False, wait_for_workers=False, timeout=timedelta(seconds=60))

    def watch() -> None:
        try:
            while True:
                store.check(["flywheel"])
                time.sleep(STORE_SECONDS)
        except RuntimeError:
            os._exit(GONE)

    threading.Thread(target=watch, daemon=True).start()


def pick_device() -> torch.device:
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    return device


def make_deterministic() -> None:
    """From now on the same task gives the same bits on the same machine."""
    # read when the first product on a GPU is computed
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.use_deterministic_algorithms(True)
    # this package reads no memory that it has not written
    torch.utils.deterministic.fill_uninitialized_memory = False
    # Compiled kernels that are chosen by timing them may differ between two processes. torch has this setting from 2.10 on.
    if hasattr(inductor_config, "deterministic"):
        inductor_config.deterministic = True


def device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


if __name__ == "__main__":
    main()
