#!/bin/sh
# Installs Debian's Chromium, its WebDriver and the programs that put certificates where it looks, for
# the tests of the live page. Safe to repeat; when all is there it ends at once. Needs root and a Debian-like system.
set -eu

missing=""
for package in chromium chromium-driver libnss3-tools; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
[ "$(id -u)" = 0 ] || { echo "missing packages:$missing; run this as root" >&2; exit 1; }

export DEBIAN_FRONTEND=noninteractive
install() { apt-get install -y -q --no-install-recommends --no-upgrade "$@"; }
# shellcheck disable=SC2086
install $missing || { apt-get update -q && install $missing; }
