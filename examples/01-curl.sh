#!/usr/bin/env bash
# Chats from the shell. Start a server first:  bin/flywheel serve
#   OPENAI_API_KEY=<token> examples/01-curl.sh "What is a flywheel?"
set -euo pipefail
url="${OPENAI_BASE_URL:-http://127.0.0.1:8000/v1}"
question="${1:-Say hello.}"
body=$(node -p 'JSON.stringify({ messages: [{ role: "user", content: process.argv[1] }], max_tokens: 64 })' "$question")
curl --silent --show-error --fail-with-body "$url/chat/completions" \
  --header "Authorization: Bearer $OPENAI_API_KEY" \
  --header "Content-Type: application/json" \
  --data "$body"
echo
