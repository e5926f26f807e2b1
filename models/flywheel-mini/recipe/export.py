"""Export: writes a checkpoint of this recipe as a Hugging Face model folder.

    python3 export.py --checkpoint tuned.pt --tokenizer FOLDER --template chat_template.jinja --out MODEL
"""
import argparse
import json
import os
import shutil

import torch
from safetensors.torch import save_file

from model import CONFIG


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--template", required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    weights = {name: tensor.bfloat16().contiguous() for name, tensor in torch.load(options.checkpoint, weights_only=True).items()}
    save_file(weights, os.path.join(options.out, "model.safetensors"), metadata={"format": "pt"})
    config = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "dtype": "bfloat16",
        "hidden_act": "silu",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "tie_word_embeddings": True,
        "use_cache": True,
        "use_sliding_window": False,
        "sliding_window": None,
        "bos_token_id": None,
        "eos_token_id": 2,
        "pad_token_id": 0,
        "initializer_range": 0.02,
        **CONFIG,
        "rope_parameters": {"rope_type": "default", "rope_theta": CONFIG["rope_theta"]},
    }
    generation = {"eos_token_id": [2, 0], "pad_token_id": 0, "do_sample": True, "temperature": 0.7, "top_p": 0.9}
    for name, value in (("config.json", config), ("generation_config.json", generation)):
        with open(os.path.join(options.out, name), "w") as file:
            json.dump(value, file, indent=2)
            file.write("\n")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(os.path.join(options.tokenizer, name), options.out)
    shutil.copy(options.template, os.path.join(options.out, "chat_template.jinja"))
    print("exported", sum(t.numel() for t in weights.values()), "parameters to", options.out)


if __name__ == "__main__":
    main()
