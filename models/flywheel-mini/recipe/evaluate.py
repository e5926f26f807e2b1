"""Evaluation on the GPU: writes the model's replies to held-out prompts; score.ts grades them.

    python3 evaluate.py --model FOLDER --cases cases.jsonl --out replies.jsonl

FOLDER is an exported Hugging Face checkpoint. It is read with transformers, which also shows that the export loads.
Replies are greedy, except for cases with a "temperature".
"""
import argparse
import json
import os
import time

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM


@torch.no_grad()
def reply(model, tokenizer, cases, limit, end):
    """Cases of one temperature, left-padded into one batch."""
    prompts = [tokenizer.encode(case["prompt"]).ids for case in cases]
    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(p)) + p for p in prompts], device="cuda")
    mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts], device="cuda")
    temperature = cases[0].get("temperature", 0)
    sampling = {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {"do_sample": False}
    out = model.generate(input_ids=ids, attention_mask=mask, max_new_tokens=limit, eos_token_id=end, pad_token_id=0, **sampling)
    texts = []
    for row in out[:, longest:].tolist():
        if end in row:
            row = row[: row.index(end)]
        texts.append(tokenizer.decode([t for t in row if t != 0], skip_special_tokens=False))
    return texts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    options = parser.parse_args()
    tokenizer = Tokenizer.from_file(os.path.join(options.model, "tokenizer.json"))
    end = tokenizer.token_to_id("<|im_end|>")
    dtype = getattr(torch, options.dtype)
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=dtype, use_safetensors=True).cuda().eval()
    torch.manual_seed(0)
    with open(options.cases) as lines:
        cases = [json.loads(line) for line in lines]
    cases.sort(key=lambda case: (case.get("temperature", 0), len(case["prompt"])))
    begin = time.time()
    with open(options.out, "w") as out:
        while cases:
            size = next((i for i, case in enumerate(cases[: options.batch]) if case.get("temperature", 0) != cases[0].get("temperature", 0)), options.batch)
            batch, cases = cases[:size], cases[size:]
            for case, text in zip(batch, reply(model, tokenizer, batch, 160, end)):
                out.write(json.dumps({"id": case["id"], "reply": text}) + "\n")
            print(f"{len(cases)} cases left, {time.time() - begin:.0f} s", flush=True)
            if time.time() - begin > options.seconds:
                break


if __name__ == "__main__":
    main()
