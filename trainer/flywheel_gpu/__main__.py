"""`python -m flywheel_gpu`: started by the server, which names its socket in the environment."""

import os
import platform
import signal
import sys
import traceback

from .channel import BROKEN, BrokenFrame, Channel, die_with_parent, end

FAULT, REFUSED = 3, 4


def main() -> None:
    # It reaches every process of a terminal. The server decides when this one ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
    where = os.environ.get("FLYWHEEL_GPU_SOCKET")
    if where is None:
        sys.exit("the server starts this program: it needs FLYWHEEL_GPU_SOCKET")
    try:
        run(Channel(where))
    except BrokenFrame as error:
        end(BROKEN, f"the server broke the protocol: {error}")
    except BaseException as error:  # a CUDA error leaves nothing to go on with
        traceback.print_exc()
        end(FAULT, f"{type(error).__name__}: {error}")


def run(channel: Channel) -> None:
    import torch

    from . import PROTOCOL
    from .serve import Refused, Server

    versions = {"python": platform.python_version(), "torch": torch.__version__, "triton": triton_version()}
    channel.send("dial", {"protocol": PROTOCOL, "nonce": os.environ.get("FLYWHEEL_GPU_NONCE", ""), **versions})
    hello = channel.receive()
    channel.start()
    try:
        server = Server(channel, hello.header)
    except Refused as refused:
        channel.send("refused", {"message": str(refused)})
        end(REFUSED, str(refused))
    server.steps.run()


def triton_version() -> str | None:
    try:
        import triton
    except ImportError:
        return None
    return triton.__version__


if __name__ == "__main__":
    main()
