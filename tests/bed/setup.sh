#!/bin/sh
# Installs the Debian packages the test bed's node and image build need, and the programs of others
# that tests run: shells, curl. Safe to repeat; when all is there it ends at once. Needs root and a Debian-like system.
set -eu

wanted="containerd runc containernetworking-plugins iproute2 busybox-static buildah debootstrap
debian-archive-keyring prometheus ca-certificates curl zsh fish systemd"
missing=""
for package in $wanted; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
[ "$(id -u)" = 0 ] || { echo "missing packages:$missing; run this as root" >&2; exit 1; }

echo "Installing Debian packages:$missing"
# The packages bring services (containerd, prometheus); the bed starts its own. A policy of 101
# keeps Debian's scripts from starting them now, `disable` keeps the next boot from doing it.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
install() { apt-get install -y -q --no-install-recommends --no-upgrade "$@"; }
# shellcheck disable=SC2086
install $missing || { apt-get update -q && install $missing; }
for service in containerd prometheus; do
    case "$missing" in *" $service"*)
        if command -v systemctl >/dev/null; then systemctl disable "$service" || true; fi ;;
    esac
done
