#!/bin/sh
# A script for cron, Jenkins or a person: runs the check and ends with its exit code.
#   REPORTER_IMAGE=registry.example.org/team/status-reporter:0.1.0 ./check.sh job.yaml validate
set -eu

manifest=$1
job=$2

kubectl delete job "$job" --ignore-not-found
# By way of a file: a pipe would apply a Job that cannot have a reporter, and the wait would be long.
injected=$(mktemp)
trap 'rm -f "$injected"' EXIT
status-ctl inject -f "$manifest" --image "$REPORTER_IMAGE" --with-rbac >"$injected"
kubectl apply -f "$injected"

code=0
status-ctl wait "job/$job" --timeout 11m || code=$?
if [ "$code" -ne 0 ]; then
  status-ctl explain "$job"
fi
exit "$code"
