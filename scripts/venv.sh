#!/usr/bin/env bash
# Makes the virtual environment DIR, with the locked packages of FILE and this project, editable.
#
#   venv.sh DIR FILE PYTHON
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$1 lock=$2 python=$3
if [ ! -x "$dir/bin/python" ]; then "$python" -m venv "$dir"; fi
pip=("$dir/bin/python" -m pip --quiet --disable-pip-version-check)
"${pip[@]}" install --require-hashes --only-binary :all: --requirement "$lock"
# Without setuptools' advice about directories named like the package: this one is the package.
PYTHONWARNINGS=ignore "${pip[@]}" install --no-deps --no-index --no-build-isolation --editable .
