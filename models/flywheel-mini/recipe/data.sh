#!/usr/bin/env bash
# The data side of the recipe, on any machine with Node, python3, zstd and xz:
#   data.sh DATA PACK [PART]     DATA holds the *.jsonl.zst files named in the model card; gpu.sh reads PACK.
# PART (default 1) is the share of the synthetic chat to write; 0.001 for a quick look. Another SEED (default 1) draws other chat.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
data=$1 pack=$2 part=${3:-1} seed=${SEED:-1}
export PYTHONDONTWRITEBYTECODE=1
count() { awk -v n="$1" -v part="$part" 'BEGIN { c = int(n * part); print (c < 10 ? 10 : c) }'; }
make() { node "$here/dist/make-chat.js" "$@"; }
mkdir -p "$pack/dose"

(cd "$here/../../.." && npx tsc -p models/flywheel-mini/recipe)
python3 "$here/pack_text.py" --data "$data" --out "$pack"
python3 "$here/heldout_text.py" --data "$data" --out "$pack/heldout.jsonl"
python3 "$here/format_exercises.py" --data "$data" --out "$pack"
make --split train --seed "$seed" --count "$(count 450000)" --out "$pack/synthetic.jsonl"
make --split train --seed "$seed-fresh" --count "$(count 900000)" --out "$pack/fresh.jsonl"
make --split train --seed "$seed-last" --count "$(count 600000)" --out "$pack/last.jsonl"
make --split heldout --seed replies --count 2000 --out "$pack/replies.jsonl"
make --split train --seed "$seed" --task add-3 --count "$(count 20000)" --out "$pack/dose/add3.jsonl"
make --split heldout --seed probe --task add-3 --count "$(count 200)" --out "$pack/dose/probe.jsonl"
xz -f -T0 -6 "$pack/synthetic.jsonl" "$pack/fresh.jsonl" "$pack/last.jsonl" "$pack/replies.jsonl" "$pack/dose/add3.jsonl" "$pack/dose/probe.jsonl"
make --cases 60 --out "$pack/cases.jsonl"
