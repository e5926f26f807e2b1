#!/usr/bin/env bash
# The GPU side of the recipe: tokenizer, tokens, pretraining, tuning, settling, export, replies to the held-out cases.
#   gpu.sh PACK WORK [STAGE...]     PACK comes from data.sh; WORK receives everything.
# Stages (default: all): reading tokenizer tokens pretrain tune settle export evaluate
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
pack=$1 work=$2
shift 2
stages=${*:-reading tokenizer tokens pretrain tune settle export evaluate}
export PYTHONUNBUFFERED=1 TOKENIZERS_PARALLELISM=true
mkdir -p "$work"
cd "$here"
# tune STAGE WEIGHTS SECONDS
tune() { python3 tune.py --stage "$1" --tokens "$work/tokens" --pack "$pack" --tokenizer "$work/tokenizer" --start "$work/$2.pt" --out "$work" --seconds "$3"; }
for stage in $stages; do
  echo "== $stage $(date +%T)"
  case $stage in
    reading) python3 reading_exercises.py --pack "$pack" ;;
    tokenizer) python3 train_tokenizer.py --pack "$pack" --out "$work/tokenizer" ;;
    tokens) python3 encode_pack.py --pack "$pack" --tokenizer "$work/tokenizer" --out "$work/tokens" ;;
    pretrain) python3 pretrain.py --tokens "$work/tokens" --pack "$pack" --tokenizer "$work/tokenizer" --out "$work" --seconds "${PRETRAIN_SECONDS:-430}" ;;
    tune) tune tune pretrained "${TUNE_SECONDS:-640}" ;;
    settle) tune settle tuned "${SETTLE_SECONDS:-280}" ;;
    export)
      for name in tuned settled; do
        python3 export.py --checkpoint "$work/$name.pt" --tokenizer "$work/tokenizer" --template ../chat_template.jinja --out "$work/$name"
      done
      ;;
    evaluate) python3 evaluate.py --model "$work/settled" --cases "$pack/cases.jsonl" --out "$work/replies.jsonl" --seconds "${EVALUATE_SECONDS:-60}" ;;
    *) echo "unknown stage $stage" >&2; exit 2 ;;
  esac
done
