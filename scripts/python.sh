#!/usr/bin/env bash
# Names a Python that the project runs on (3.11 to 3.13) and that can make virtual environments.
#
#   python.sh                the one to work with: $PYTHON, else the machine's usual python3, else by version
#   python.sh other VERSION  another minor version than VERSION to repeat the unit tests on,
#                            3.13 or 3.11, the two ends of the range; prints nothing if there is none
set -euo pipefail

version() { # prints 3.x; fails where PYTHON is missing, cannot make environments or does not fit
  "$1" -c 'import sys, venv, ensurepip
assert (3, 11) <= sys.version_info < (3, 14)
print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}

if [ "${1:-}" = other ]; then
  for minor in 3.13 3.11; do
    # pyenv puts versions that are not selected out of the PATH's reach.
    for python in "python$minor" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$minor".*/bin/python; do
      if [ "$minor" != "$2" ] && [ "$(version "$python" || true)" = "$minor" ]; then
        echo "$python"
        exit
      fi
    done
  done
  exit
fi

for python in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
  if version "$python" >/dev/null; then
    echo "$python"
    exit
  fi
done
echo "No usable Python among: ${PYTHON:-python3 python3.13 python3.12 python3.11}." \
  "Needed: 3.11, 3.12 or 3.13 with the venv module (on Debian: apt-get install python3-venv)." >&2
exit 1
