#!/bin/sh
# check_scale.sh - a conversion at full scale: 112,120 images, by hand and not in CI
#
#     tests/cli/check_scale.sh [--tensorflow] [--size N] [-j N] [--keep] FOLDER
#
# The 67 or so real images in $CHEX_NIH/images are linked, again and again, under all names of the label file; then they
# are converted with the official split, and checked.  FOLDER must be empty or absent, and on the file system of
# CHEX_NIH, or the images are copied there first (30 MB).  Needs 7.4 GB.  --tensorflow: read every record with
# TensorFlow and compare it with the sources.  The shards are removed at the end unless --keep is given.
#
# $CHEX_CONVERT and $CHEX_INSPECT are the programs, default: those in build/.
#
# SPDX-License-Identifier: Apache-2.0
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/setup.sh
. "$source/tests/setup.sh"

tensorflow=no
keep=no
size=256
threads=$(cores)
folder=
while [ $# -gt 0 ]; do
    case $1 in
        --tensorflow) tensorflow=yes ;;
        --keep) keep=yes ;;
        --size) size=${2:?}; shift ;;
        -j) threads=${2:?}; shift ;;
        -*) sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
        *) folder=$1 ;;
    esac
    shift
done
[ -n "$folder" ] || { sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 2; }
nih=${CHEX_NIH:?set CHEX_NIH to a folder with images/, csv/ and lists/}
labels=$nih/csv/Data_Entry_2017_v2020.csv.gz
convert=${CHEX_CONVERT:-$build/chex-convert}
inspect=${CHEX_INSPECT:-$build/chex-inspect}
[ -x /usr/bin/time ] || die "needs /usr/bin/time (Debian: apt-get install time)"
[ ! -e "$folder/shards" ] || die "'$folder/shards' is there already"

# measured NAME COMMAND...: run it; its wall time and peak memory.
measured() {
    name=$1
    shift
    code=0
    /usr/bin/time -v -o "$folder/$name.time" "$@" || code=$?
    awk -v name="$name" -v code="$code" -F': ' '
        /Elapsed/ { wall = $2 }
        /Maximum resident/ { rss = $2 }
        /User time/ { user = $2 }
        /System time/ { system_ = $2 }
        END { printf "%-12s exit %d, %s wall, %s s user, %s s system, %.1f MB peak\n",
                     name, code, wall, user, system_, rss / 1024 }
    ' "$folder/$name.time"
    [ "$code" -eq 0 ] || exit "$code"
}

headline "112,120 links"
mkdir -p "$folder"
"$python" - "$nih/images" "$labels" "$folder" << 'END'
import csv, gzip, os, shutil, sys
images, labels, folder = sys.argv[1:]
names = [row[0] for row in list(csv.reader(gzip.open(labels, "rt", encoding="utf-8")))[1:]]
sources = sorted(os.path.join(images, n) for n in os.listdir(images))
os.makedirs(os.path.join(folder, "originals"), exist_ok=True)
local = []
for path in sources:
    to = os.path.join(folder, "originals", os.path.basename(path))
    if not os.path.exists(to):
        shutil.copyfile(path, to)
    local.append(to)
for i, name in enumerate(names):
    at = os.path.join(folder, "links", f"images_{i // 10000 + 1:03d}", "images")
    if i % 10000 == 0:
        os.makedirs(at, exist_ok=True)
    to = os.path.join(at, name)
    own = os.path.join(folder, "originals", name)
    if not os.path.exists(to):
        os.link(own if os.path.exists(own) else local[i % len(local)], to)
print(len(names), "names of", len(local), "images")
END

headline "chex-convert, $threads threads"
measured convert "$convert" -i "$folder/links" -l "$labels" --lists "$nih/lists" --split official --size "$size" \
    -j "$threads" -o "$folder/shards"
"$python" - "$folder/shards" << 'END'
import json, os, sys
folder = sys.argv[1]
m = json.load(open(os.path.join(folder, "manifest.json"), encoding="utf-8"))
sizes = {os.path.getsize(os.path.join(folder, s["name"])) for s in m["shards"]}
print(len(m["shards"]), "shards of", sizes, "bytes, stride", m["record"]["stride"], "in all",
      sum(s["size"] for s in m["shards"]), "bytes; records", sum(s["records"] for s in m["shards"]),
      "of weight 1", sum(s["images"] for s in m["shards"]))
for s in m["splits"]:
    print(s["name"], s["images"], "images", s["patients"], "patients", s["shards"], "shards")
assert len(sizes) == 1 and sum(s["images"] for s in m["shards"]) == 112120
END

headline "chex-inspect check --full"
measured inspect "$inspect" check --full -j "$threads" "$folder/shards"

if [ "$tensorflow" = yes ]; then
    headline "TensorFlow reads every record"
    measured tensorflow env PYTHONPATH="$source/tests/python" "$python" "$source/tests/cli/check_interop.py" \
        --tensorflow "$folder/shards" "$folder/links" "$labels"
fi
[ "$keep" = yes ] || rm -rf "$folder/shards" "$folder/links" "$folder/originals"
