"""Kills processes of the torch trainer at random moments. Afterwards none may live and no GPU memory may be held.

    python bench/torch/kills.py --count 20 --seconds 300

A round starts torchrun with one rank and a task of many steps, and kills -9 torchrun, the rank or another of its
processes, or hangs up as a dying server does. Then the task runs again and must end. One JSON object per round.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

from transformers import AutoConfig

from driver import TORCHRUN, TrainerProcess
from tasks import random_sequences, task, write_adapter

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
MODEL = os.path.join(ROOT, "models/flywheel-mini")
# Memory on the GPU that counts as none: it is reported in MiB, and other programs may change it a little.
NOTHING_MIB = 64


def gpu_mib() -> int:
    """Memory in use on the GPU; 0 without one."""
    try:
        query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
        return int(subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0])
    except (OSError, subprocess.CalledProcessError):
        return 0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=300, help="no round starts after this long")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--latest", type=float, default=20, help="seconds after the start of a round until its kill")
    parser.add_argument("--dtypes", default="float32,bfloat16")
    args = parser.parse_args()
    began = time.monotonic()
    rng = random.Random(args.seed)
    home = tempfile.mkdtemp()
    write_adapter(f"{home}/start", AutoConfig.from_pretrained(MODEL))
    data = random_sequences("shared", 8, 8000, scale=0.25)
    dtypes = args.dtypes.split(",")
    before = gpu_mib()

    def undisturbed(dtype: str) -> float:
        start = time.monotonic()
        trainer = TrainerProcess(TORCHRUN)
        wanted = task(home, MODEL, dtype, data, args.steps)
        steps, _ = trainer.train(wanted)
        assert len(steps) == args.steps and sorted(os.listdir(wanted["output"])) == FILES
        trainer.close()
        left = trainer.wait_until_gone(15)
        assert not left, left
        return time.monotonic() - start

    longest = {dtype: undisturbed(dtype) for dtype in dtypes}
    print(json.dumps({"undisturbed_s": longest, "gpu_mib_before": before, "gpu_mib_after": gpu_mib()}), flush=True)
    done = failed = 0
    for number in range(args.count):
        if time.monotonic() - began > args.seconds:
            break
        dtype = dtypes[number % len(dtypes)]
        trainer = TrainerProcess(TORCHRUN)
        wanted = task(home, MODEL, dtype, data, args.steps)
        ended: list[str] = []

        def run() -> None:
            try:
                trainer.train(wanted)
                ended.append("done")
            except (OSError, RuntimeError, ValueError) as error:
                ended.append(str(error))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        moment = rng.uniform(0.2, min(longest[dtype], args.latest))
        time.sleep(moment)
        alive = sorted(trainer.processes())
        most = gpu_mib()
        victim = rng.choice([*alive, "server"])
        if victim == "server":
            trainer.hang_up()
        else:
            names = {pid: " ".join(open(f"/proc/{pid}/cmdline").read().split("\0")[1:4]) for pid in [victim] if os.path.exists(f"/proc/{pid}")}
            os.kill(victim, signal.SIGKILL)
            # the server hears of it by the end of the connection or of the command, and ends the rest
            time.sleep(0.5)
            trainer.close()
        left = trainer.wait_until_gone(20)
        time.sleep(0.5)
        held = gpu_mib() - before
        whole = not os.path.exists(wanted["output"]) or sorted(os.listdir(wanted["output"])) == FILES
        good = not left and held < NOTHING_MIB and whole
        done, failed = done + 1, failed + (not good)
        line = {"kill": number + 1, "dtype": dtype, "at_s": round(moment, 1), "of": len(alive),
                "victim": "server" if victim == "server" else names.get(victim, "gone"), "gpu_mib_during": most - before,
                "left": left, "gpu_mib_held": held, "output_whole_or_absent": whole, "ok": good}
        print(json.dumps(line), flush=True)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
    again = {dtype: round(undisturbed(dtype), 1) for dtype in dtypes}
    print(json.dumps({"kills": done, "failed": failed, "again_s": again, "gpu_mib_held": gpu_mib() - before}), flush=True)
    sys.exit(1 if failed else 0)


FILES = ["adapter_config.json", "adapter_model.safetensors", "optimizer.safetensors"]

if __name__ == "__main__":
    main()
