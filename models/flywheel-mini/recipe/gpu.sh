#!/usr/bin/env bash
# The GPU side of the recipe in one go: tokenizer, tokens, pretraining, tuning, export, replies to the held-out cases.
#   gpu.sh PACK WORK [STAGE...]     PACK is what data.sh wrote; WORK receives everything.
# Stages (default all but polish): reading tokenizer tokens pretrain tune export evaluate polish
# polish goes on with an exported model, POLISH_FROM (default WORK/model), and writes WORK/polished.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
pack=$1 work=$2
shift 2
stages=${*:-reading tokenizer tokens pretrain tune export evaluate}
export PYTHONUNBUFFERED=1 TOKENIZERS_PARALLELISM=true
mkdir -p "$work"
cd "$here"
for stage in $stages; do
  echo "== $stage $(date +%T)"
  case $stage in
    reading) python3 reading_exercises.py --pack "$pack" ;;
    tokenizer) python3 train_tokenizer.py --pack "$pack" --out "$work/tokenizer" ;;
    tokens) python3 encode_pack.py --pack "$pack" --tokenizer "$work/tokenizer" --out "$work/tokens" ;;
    pretrain) python3 pretrain.py --tokens "$work/tokens" --pack "$pack" --tokenizer "$work/tokenizer" --out "$work" --seconds "${PRETRAIN_SECONDS:-300}" ;;
    tune) python3 tune.py --tokens "$work/tokens" --pack "$pack" --tokenizer "$work/tokenizer" --start "$work/pretrained.pt" --out "$work" --seconds "${TUNE_SECONDS:-200}" ;;
    polish)
      from=${POLISH_FROM:-$work/model}
      python3 tune.py --stage polish --tokens "$work/tokens" --pack "$pack" --tokenizer "$from" --start "$from/model.safetensors" --out "$work" --seconds "${POLISH_SECONDS:-85}" --at-most "${POLISH_AT_MOST:-3600}"
      python3 export.py --checkpoint "$work/polished.pt" --tokenizer "$from" --template ../chat_template.jinja --out "$work/polished"
      ;;
    export) python3 export.py --checkpoint "$work/tuned.pt" --tokenizer "$work/tokenizer" --template ../chat_template.jinja --out "$work/model" ;;
    evaluate) python3 evaluate.py --model "$work/model" --cases "$pack/cases.jsonl" --out "$work/replies.jsonl" --seconds "${EVALUATE_SECONDS:-60}" ;;
    *) echo "unknown stage $stage" >&2; exit 2 ;;
  esac
done
