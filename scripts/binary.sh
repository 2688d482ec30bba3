#!/usr/bin/env bash
# Packs status-ctl and the packages it needs into one file, for the Pythons that the project runs on.
#
#   binary.sh OUT [SITE]    SITE: keep the packed tree there, for the list of what is in it
#
# The file is for this kind of machine (compiled packages are in it), needs no installation, and
# unpacks itself into ~/.shiv, or $SHIV_ROOT, when it starts for the first time.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
site=${2:-$folder/site}
mkdir -p "$site" "$(dirname "$out")"

case $(uname -s) in
  Linux) platform=$(uname -m)-manylinux_2_28 ;;
  Darwin) platform=$(uname -m | sed s/arm64/aarch64/)-apple-darwin ;;
  *) echo "status-ctl as one file is built on Linux and macOS, not on $(uname -s)" >&2; exit 1 ;;
esac
source scripts/uv_index.sh
for version in 3.11 3.12 3.13; do
  .venv/bin/uv pip install --quiet --target "$folder/$version" --python-version "$version" \
    --python-platform "$platform" --require-hashes --only-binary :all: --requirement requirements/image.txt
  cp -R "$folder/$version/." "$site/"
done
.venv/bin/python scripts/image_prune.py "$site"

cp -R "$site" "$folder/packed"
cp -R reporter LICENSE "$folder/packed/"
find "$folder/packed" -name __pycache__ -prune -exec rm -rf {} +
.venv-release/bin/shiv --compressed --reproducible --python "/usr/bin/env python3" \
  --entry-point reporter.status_ctl:main --site-packages "$folder/packed" --output-file "$out"
