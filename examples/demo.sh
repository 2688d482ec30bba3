#!/bin/sh
# Runs three example adapters without a cluster. Needs `status-ctl` in PATH, as `make demo` sets it.
# Exits with 0 if each of them has the expected result.
set -eu
cd "$(dirname "$0")"
shown=$(mktemp)
trap 'rm -f "$shown"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# run NUMBER TITLE EXIT-CODE REASONS STATUS-CTL-ARGUMENTS...
# REASONS is an extended regular expression, for a machine that cannot enforce a memory limit.
run() {
  number=$1 title=$2 expected=$3 reasons=$4
  shift 4
  printf '\n== %s. %s\n$ status-ctl %s\n\n' "$number" "$title" "$*"
  code=0
  status-ctl "$@" >"$shown" || code=$?
  cat "$shown"
  if [ "$code" != "$expected" ]; then
    echo "demo: the exit code is $code, not $expected" >&2
    exit 1
  fi
  if ! grep -Eq "^ *-? *reason: ($reasons)\$" "$shown"; then
    echo "demo: the reason is not $reasons" >&2
    exit 1
  fi
  printf '\n-> exit code %s\n' "$code"
}

run 1 "An adapter that works and reports success" 0 "AllStepsDone" \
  try --timeout 30 -- ./success.sh
run 2 "An adapter that reports a failure, with details" 1 "ChecksFailed" \
  try --timeout 30 -- ./failure.py
run 3 "An adapter that needs too much memory and reports nothing" 3 \
  "AdapterOOMKilled|AdapterExitedWithError" \
  try --timeout 30 --memory 32Mi -- ./out-of-memory.sh

printf '\nAll three have the expected results.\n'
