#!/usr/bin/env bash
# Writes requirements/*.txt from pyproject.toml, and the lock of deploy/plugins/ansible. Versions that
# are locked and still fit are kept; UPGRADE=1 takes the newest ones. Needs a package index; nothing
# else in the project does.
set -euo pipefail
cd "$(dirname "$0")/.."

uv=${UV:-.venv/bin/uv}
options=(--quiet --universal --python-version 3.11 --generate-hashes
  --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock")
upgrade=()
if [ -n "${UPGRADE:-}" ]; then upgrade=(--upgrade); fi

# dev.txt holds everything; the smaller files are cut from it, so that what is tested is what ships.
"$uv" pip compile "${options[@]}" "${upgrade[@]}" --extra all --group dev \
  --output-file requirements/dev.txt pyproject.toml
"$uv" pip compile "${options[@]}" --extra all --group test --constraint requirements/dev.txt \
  --no-annotate --output-file requirements/test.txt pyproject.toml
"$uv" pip compile "${options[@]}" --extra all --constraint requirements/dev.txt \
  --no-annotate --output-file requirements/image.txt pyproject.toml
"$uv" pip compile "${options[@]}" "${upgrade[@]}" --group release --constraint requirements/dev.txt \
  --no-annotate --output-file requirements/release.txt pyproject.toml
# What the image of the plugin `ansible` has beside ours; its own program, with packages of its own.
"$uv" pip compile "${options[@]}" "${upgrade[@]}" --no-annotate \
  --output-file deploy/plugins/ansible/requirements.txt deploy/plugins/ansible/requirements.in
