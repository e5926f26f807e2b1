"""The training loop that pretraining and tuning share: schedule, logging, checkpoints.

The schedule is `warm` steps of warm-up, a constant rate, then linear decay to `floor` (WSD). Progress is the larger of the
share of steps done and the share of time used, so a run on a slower machine still finishes its decay.
"""
import json
import os
import time

import torch

from optimizer import make_optimizers


def rate_at(progress, decay, floor):
    if progress < 1 - decay:
        return 1.0
    return floor + (1 - floor) * max(0.0, (1 - progress) / decay)


def save(model, out, name):
    """OUT/NAME.pt: the weights in bfloat16."""
    torch.save({k: v.bfloat16() for k, v in model.state_dict().items()}, os.path.join(out, f"{name}.pt"))


def train(model, stream, name, out, seconds, muon_lr, adam_lr, warm, decay, floor, evaluate=None, every=1000, dose=None):
    """
    Runs through the stream once, for `seconds` at most; writes OUT/NAME-log.jsonl, and with every
    evaluation the weights so far, OUT/NAME-latest.pt, while it goes.
    """
    model.compile_parts()
    muon, adam = make_optimizers(model, muon_lr, adam_lr)
    os.makedirs(out, exist_ok=True)
    log = open(os.path.join(out, f"{name}-log.jsonl"), "w")

    def record(entry):
        log.write(json.dumps(entry) + "\n")
        log.flush()
        print(name, json.dumps(entry), flush=True)

    record({"steps": stream.steps, "tokens": stream.total, "batch": stream.size})
    if evaluate is not None:
        record({"step": 0, **evaluate(model)})
    begin = time.time()
    recent, done = [], 0
    for step in range(stream.steps):
        if step == 3:
            # The first steps compile. The schedule's clock starts after them.
            torch.cuda.synchronize()
            record({"compiled_s": round(time.time() - begin, 1)})
            begin = time.time()
        progress = max(step / stream.steps, (time.time() - begin) / seconds if step > 3 else 0.0)
        if progress >= 1:
            break
        scale = min(1.0, (step + 1) / warm) * rate_at(progress, decay, floor)
        batch = stream.batch(step)
        if dose is not None:
            batch = dose.mix(batch)
        loss = model.loss(batch)
        loss.backward()
        muon.step(scale)
        for group in adam.param_groups:
            group["lr"] = adam_lr * scale
        adam.step()
        model.zero_grad(set_to_none=True)
        recent.append(loss.detach())
        done = step + 1
        if step % 50 == 49:
            mean = torch.stack(recent).mean().item()
            recent = []
            speed = (step - 2) * stream.size / (time.time() - begin)
            record({"step": step + 1, "loss": round(mean, 4), "rate": round(scale, 3), "tokens_per_s": round(speed), "s": round(time.time() - begin, 1)})
        # The probe runs often while examples are given, to catch the moment the skill appears.
        if dose is not None and step % (25 if dose.on else 100) == 24:
            record({"step": step + 1, "probe": round(dose.measure(model), 3), "examples_used": dose.used})
        if evaluate is not None and step % every == every - 1:
            record({"step": step + 1, **evaluate(model)})
            save(model, out, f"{name}-latest")
    if evaluate is not None:
        record({"step": done, **evaluate(model)})
    if dose is not None:
        record({"step": done, "probe": round(dose.measure(model), 3), "examples_used": dose.used})
    record({"done": True, "s": round(time.time() - begin, 1), "trained_tokens": done * stream.size})
    log.close()
