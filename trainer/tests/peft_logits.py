"""Loads an adapter with PEFT and compares its logits with the ones of another engine.

Arguments: a folder with the base model, an adapter's folder, and a JSON file with {"ids": [...], "logprobs": [[...]]}:
the log-probabilities of every token of the vocabulary after each id. Prints the largest difference as JSON.
"""

import json
import sys

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

base, adapter, wanted = sys.argv[1:4]
base_model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32, use_safetensors=True)
model = PeftModel.from_pretrained(base_model, adapter).eval()
reference = json.load(open(wanted, encoding="utf8"))
ids = torch.tensor([reference["ids"]])
with torch.no_grad():
    found = model(ids).logits[0].double().log_softmax(-1)
    with model.disable_adapter():
        base_logprobs = model(ids).logits[0].double().log_softmax(-1)
expected = torch.tensor(reference["logprobs"], dtype=torch.float64)
off = (found - expected).abs().max()
moved = (found - base_logprobs).abs().max()
print(json.dumps({"off": float(off), "adapter_moves": float(moved), "tokens": len(reference["ids"])}))
