#!/usr/bin/env bash
# A finishing stage: draws examples, trains on them with a supervised job of the service, adds the adapter to the weights.
#   SEED=1 finish.sh MODEL OUT [COUNT [RATE]]     MODEL is a Hugging Face folder; OUT receives the finished one. COUNT is the number of examples, default 7000.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
model=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
(cd "$here/../../.." && npm run --silent build && npx tsc -p models/flywheel-mini/recipe)
node "$here/dist/make-chat.js" --finish "${3:-7000}" --seed "${SEED:-1}" --out "$out/finish-examples.jsonl"
node "$here/finish.mjs" "$model" "$out/finish-examples.jsonl" "$out" "${4:-3e-4}"
cp "$model"/*.json "$model"/*.jinja "$out"
