#!/bin/sh
# bare-root.sh - run a command in a Debian 12 (SUITE=bullseye: 11) that has nothing but this repository
#
#     tests/tree/bare-root.sh FOLDER [COMMAND...]      as root; default command: ./quickstart.sh && ./run-tests.sh
#
# FOLDER becomes a root file system made by debootstrap (minbase), if it is none yet; the tracked and the new files of
# the repository are copied to /src in it, without anything that was built.  Where packages come from is taken from
# this machine: its apt sources and settings, those of pip, its certificates and its resolver.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -gt 0 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || { echo "bare-root.sh: only root can do this" >&2; exit 2; }
command -v debootstrap > /dev/null || { echo "bare-root.sh: needs debootstrap" >&2; exit 2; }
root=$1
suite=${SUITE:-bookworm}
shift
[ $# -gt 0 ] || set -- sh -c './quickstart.sh && ./run-tests.sh'

# The first archive of this machine's Debian 12 that apt uses here: it has the other suites too.
mirror() {
    # shellcheck disable=SC2016  # fields of apt
    apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(CODENAME)' 2> /dev/null |
        awk '$2 == "Debian" && $3 == "bookworm" { print $1; exit }'
}

# Settings of apt and pip, certificates, resolver: without them nothing can be downloaded on some networks.
copy_settings() {
    mkdir -p "$root/etc/ssl" "$root/etc/apt/apt.conf.d"
    for path in /etc/resolv.conf /etc/hosts /etc/pip.conf; do
        [ ! -f "$path" ] || cp "$path" "$root$path"
    done
    # Under another name: the package ca-certificates writes its own.
    [ ! -f /etc/ssl/certs/ca-certificates.crt ] ||
        cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/machine.crt"
    apt-config dump | grep -E '^Acquire::(https?|::Proxy|Retries)' > "$root/etc/apt/apt.conf.d/90machine" || true
    {
        echo "deb $archive $suite main"
        echo "deb $archive $suite-updates main"
    } > "$root/etc/apt/sources.list"
}

unmount() {
    for point in dev/shm dev proc; do
        ! mountpoint -q "$root/$point" || umount -l "$root/$point"
    done
}

archive=$(mirror)
[ -n "$archive" ] || { echo "bare-root.sh: apt knows no archive of Debian 12 here" >&2; exit 2; }
if [ ! -x "$root/bin/sh" ]; then
    debootstrap --variant=minbase "$suite" "$root" "$archive"
fi
copy_settings
rm -rf "$root/src"
mkdir -p "$root/src"
# Files that git tracks or would track; in an unpacked release all but what was built.
if git -C "$source" rev-parse 2> /dev/null; then
    (cd "$source" && git ls-files --cached --others --exclude-standard -z | tar --null -T - -cf -)
else
    tar -C "$source" --exclude='./build*' -cf - .
fi | tar -xf - -C "$root/src"

trap unmount EXIT
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --make-rslave "$root/dev"
settings=$(env |
    grep -E '^(PIP_(INDEX_URL|EXTRA_INDEX_URL|DEFAULT_TIMEOUT)=|https?_proxy=|no_proxy=|HTTPS?_PROXY=|NO_PROXY=)' ||
    true)
[ ! -f "$root/etc/ssl/machine.crt" ] || settings="$settings PIP_CERT=/etc/ssl/machine.crt"
# shellcheck disable=SC2086,SC2016  # one NAME=VALUE a word; $0 and $@ are for the inner shell
env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 $settings \
    chroot "$root" sh -c 'cd /src && exec "$@"' sh "$@"
