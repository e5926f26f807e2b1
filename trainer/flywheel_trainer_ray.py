"""Starts the trainer's ranks on a Ray cluster: `python -m flywheel_trainer_ray --workers 8`.

Use it as the server's --trainer-command, with --trainer-address when ranks may run on other machines. Ray Train places one
rank per worker and joins them; each runs flywheel_trainer as torchrun would start it. The package and the checkpoint must
be readable on every machine under the same path. Needs `ray[train]`.
"""

import argparse
import os
import signal

PASSED_ON = (
    "PYTHONPATH", "FLYWHEEL_TRAINER_ADDRESS", "FLYWHEEL_TRAINER_SOCKET", "FLYWHEEL_TRAINER_NONCE",
    "FLYWHEEL_TRAINER_KEY_FILE", "FLYWHEEL_TRAINER_DETERMINISTIC", "FLYWHEEL_TRAINER_DIVIDE",
    "HF_HUB_OFFLINE", "TRANSFORMERS_VERBOSITY", "OMP_NUM_THREADS",
)


def rank(_: dict) -> None:
    """Runs in a process of a Ray worker, in a thread of Ray's: signals stay as Ray set them."""
    from flywheel_trainer import __main__ as trainer

    trainer.run()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, required=True, help="ranks; one GPU each unless --cpu")
    parser.add_argument("--cpu", action="store_true", help="train on processors, with gloo")
    parser.add_argument("--address", default=os.environ.get("RAY_ADDRESS"), help="of the cluster; default: a local Ray")
    args = parser.parse_args()
    import ray
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    # the server ends this process with SIGTERM; Ray then ends its workers
    signal.signal(signal.SIGTERM, lambda *_: os._exit(1))
    env = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    ray.init(address=args.address, runtime_env={"env_vars": env}, include_dashboard=False)
    trainer = TorchTrainer(
        rank,
        train_loop_config={},
        scaling_config=ScalingConfig(num_workers=args.workers, use_gpu=not args.cpu),
        torch_config=TorchConfig(backend="gloo" if args.cpu else "cpu:gloo,cuda:nccl", timeout_s=600),
        run_config=RunConfig(name="flywheel-trainer"),
    )
    trainer.fit()


if __name__ == "__main__":
    main()
