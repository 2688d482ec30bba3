#!/bin/sh
# An adapter that does its work, reports progress, and then success.
set -eu
result=${RESULTS_PATH:-/results/adapter-result.json}
progress=${PROGRESS_PATH:-$(dirname "$result")/progress.json}

for step in 1 2 3; do
  sleep 0.2
  echo "{\"total\": 3, \"completed\": $step, \"msg\": \"step $step done\"}" >"$progress.new"
  mv "$progress.new" "$progress"
done

# Written to a temporary file and renamed, so that it is never read half-written.
cat >"$result.new" <<'JSON'
{
  "status": "success",
  "reason": "AllStepsDone",
  "message": "3 of 3 steps done"
}
JSON
mv "$result.new" "$result"
