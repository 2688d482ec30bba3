#!/usr/bin/env bash
# Makes the virtual environment DIR, with the locked packages of FILE and this project, editable.
#
#   venv.sh DIR FILE PYTHON
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$1 lock=$2 python=$3
if [ ! -x "$dir/bin/python" ]; then "$python" -m venv "$dir"; fi
pip=("$dir/bin/python" -m pip --quiet --disable-pip-version-check)
locked=(--require-hashes --only-binary :all: --requirement)

# uv takes half a minute less than pip. It does not read pip's settings: where it cannot install, pip does.
uv=.venv/bin/uv
install_with_uv() {
  if [ ! -x "$uv" ]; then
    sed -n '/^uv==/,/[^\\]$/p' "$lock" >"$dir/uv.txt"
    "${pip[@]}" install --no-deps "${locked[@]}" "$dir/uv.txt"
  fi
  source scripts/uv_index.sh
  "$uv" pip install --quiet --compile-bytecode --python "$dir/bin/python" "${locked[@]}" "$lock"
}
install_with_uv || "${pip[@]}" install "${locked[@]}" "$lock"
# Without setuptools' advice about directories named like the package: this one is the package.
PYTHONWARNINGS=ignore "${pip[@]}" install --no-deps --no-index --no-build-isolation --editable .
