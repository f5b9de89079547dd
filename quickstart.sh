#!/bin/sh
# quickstart.sh - from nothing to shards that were checked and read back, and to a network that has learnt from them
#
# SPDX-License-Identifier: Apache-2.0
set -eu
source=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/setup.sh
. "$source/tests/setup.sh"

usage() {
    cat << 'END'
usage: ./quickstart.sh [-n COUNT] [-o OUT] [--tensorflow | --no-tensorflow] [FOLDER]

Installs Debian packages that are missing (as root or with sudo; others go on with what is there), builds in the folder
build/, makes a synthetic data set, converts it, checks every record, reads the shards back with NumPy and TensorFlow,
and trains a small network.

  FOLDER            the real data set instead: with Data_Entry_2017*.csv, images/ or images_001/ to images_012/ or
                    images_001.tar.gz to images_012.tar.gz, and train_val_list.txt and test_list.txt where they are
                    there; labels and lists in itself or in folders one level below.  It is not trained on: that takes
                    long, and the commands for it are shown
  -n COUNT          so many synthetic images (default 2000: with them the network learns something)
  -o OUT            folder for the shards (default build/quickstart/demo-COUNT/shards, or
                    build/quickstart/NAME-OF-FOLDER)
  --tensorflow      read back with TensorFlow too, without a question: a download of 300 MB, into build/venv
  --no-tensorflow   read back with NumPy only, without a question
END
}

count=2000
out=
folder=
tensorflow=ask
while [ $# -gt 0 ]; do
    case $1 in
        -n) count=${2:?-n needs a number}; shift ;;
        -o) out=${2:?-o needs a folder}; shift ;;
        --tensorflow) tensorflow=yes ;;
        --no-tensorflow) tensorflow=no ;;
        -h | --help) usage; exit 0 ;;
        -*) usage >&2; exit 2 ;;
        *) [ -z "$folder" ] || { usage >&2; exit 2; }; folder=$1 ;;
    esac
    shift
done
case $count in
    '' | *[!0-9]* | 0*) die "-n needs a number of images, not '$count'" ;;
esac
[ -z "$folder" ] || [ -d "$folder" ] || die "'$folder' is not a folder"

# first PATTERN...: the first file of these names in $folder or one level below.
first() {
    for pattern in "$@"; do
        found=$(find -L "$folder" -maxdepth 2 -type f -name "$pattern" | sort | head -n 1)
        [ -z "$found" ] || { echo "$found"; return; }
    done
}

# recipe NAME: the block of README.md or doc/reading.md with this name.
recipe() {
    awk -v mark="<!-- recipe: $1 -->" '
        $0 == mark { here = 1; next }
        here && /^```python/ { inside = 1; next }
        inside && /^```/ { exit }
        inside' "$source/README.md" "$source/doc/reading.md"
}

# read_back PYTHON NAME
read_back() {
    headline "read back: the recipe '$2'"
    recipe "$2" > "$build/quickstart/recipe-$2.py"
    CHEX_DATASET=$out PYTHONPATH=$source/python TF_CPP_MIN_LOG_LEVEL=3 "$1" "$build/quickstart/recipe-$2.py" \
        2> "$build/quickstart/recipe-$2.log" || {
        tail -n 12 "$build/quickstart/recipe-$2.log" >&2
        die "the recipe '$2' failed"
    }
}

# shellcheck disable=SC2086  # lists of words
need $build_packages $python_packages
headline "build"
build_in "$build"
PATH=$build:$PATH
mkdir -p "$build/quickstart"

run=
if [ -z "$folder" ]; then
    demo=$build/quickstart/demo-$count
    folder=$demo/synth
    if [ ! -f "$folder/.complete" ]; then
        headline "chex-synth: $count synthetic images"
        rm -rf "$folder"
        mkdir -p "$demo"
        chex-synth -n "$count" --size 256 -o "$folder"
        touch "$folder/.complete"
    fi
    out=${out:-$demo/shards}
    run=$demo/run
else
    folder=$(cd "$folder" && pwd)
    out=${out:-$build/quickstart/$(basename "$folder")}
fi

labels=$(first 'Data_Entry_2017_v2020.csv' 'Data_Entry_2017_v2020.csv.gz' 'Data_Entry*.csv' 'Data_Entry*.csv.gz')
[ -n "$labels" ] || die "no Data_Entry*.csv in '$folder' or a folder in it"
list=$(first 'train_val_list.txt' 'train_val_list.txt.gz')

headline "chex-convert: $labels"
set -- -l "$labels" -o "$out"
inputs=0
archives=
for images in "$folder"/images*; do
    case $images in
        *.tar | *.tar.* | *.tgz | *.zip) archives=yes ;;
        *) [ -d "$images" ] || continue ;;
    esac
    set -- "$@" -i "$images"
    inputs=$((inputs + 1))
done
[ "$inputs" -gt 0 ] || set -- "$@" -i "$folder"
[ -z "$list" ] || set -- "$@" --split official --lists "$(dirname "$list")"
[ -z "$run" ] || set -- "$@" --size 96 # the small network needs no more
left_out=
leave_out() {
    echo "$1: those that are missing are left out (--allow-missing)."
    left_out=--allow-missing
}

# What folders hold is known at once, what archives hold only when a run has read them.  Of a set that lacks images the
# first run with them ends with 3; one that was converted without them is another data set, 6.
code=0
chex-convert -q -n "$@" 2> /dev/null || code=$?
[ "$code" -ne 3 ] || leave_out "Not all images of the label file are here"
code=0
chex-convert "$@" $left_out || code=$?
if [ -z "$left_out" ] && [ -n "$archives" ] && { [ "$code" -eq 3 ] || [ "$code" -eq 6 ]; }; then
    leave_out "Not all images of the label file are in these archives"
    code=0
    chex-convert "$@" $left_out || code=$?
fi
case $code in
    0) ;;
    1) echo "Some images could not be used: see $out/rejects.jsonl" ;;
    6) die "'$out' holds another data set: remove it, or give another folder with -o" ;;
    75) echo "Stopped: the same command resumes."; exit 75 ;;
    *) die "chex-convert ended with $code" ;;
esac

headline "chex-inspect: every record"
chex-inspect check --full "$out" || die "chex-inspect found faults"
# Debian's Python has no NumPy where it could not be installed; that of conda or of a virtual environment may have it.
with_numpy=
for candidate in "$python" python3 "$venv/bin/python"; do
    if [ -z "$with_numpy" ] && "$candidate" -c 'import numpy' 2> /dev/null; then
        with_numpy=$candidate
    fi
done
if [ -n "$with_numpy" ]; then
    read_back "$with_numpy" numpy
else
    echo "Not read back with NumPy: no python3 here has it (pip install numpy)."
fi
# A download that is there already needs no question; where nobody can answer, it needs the option.
if [ "$tensorflow" = ask ]; then
    tensorflow=no
    if cmp -s "$source/tests/requirements.txt" "$venv/.requirements.txt"; then
        tensorflow=yes
    elif [ -t 0 ] && [ -t 1 ]; then
        printf '\nRead the shards back with TensorFlow too?  It is a download of 300 MB. [y/N] '
        read -r answer || answer=
        case $answer in [yY]*) tensorflow=yes ;; esac
    else
        echo "Not read back with TensorFlow, a download of 300 MB: --tensorflow"
    fi
fi
if [ "$tensorflow" = yes ]; then
    if need_modules "$source/tests/requirements.txt"; then
        read_back "$venv/bin/python" tfrecorddataset
    else
        echo "TensorFlow could not be installed; the shards are the same without it."
    fi
fi

if [ -n "$run" ]; then
    headline "chex-train: a small network, on these images"
    code=0
    chex-train -d "$out" -o "$run" --model densenet-micro || code=$?
    case $code in
        0) ;;
        75) echo "Stopped: the same command resumes."; exit 75 ;;
        *) die "chex-train ended with $code" ;;
    esac
fi

headline "done"
cat << END
programs   $build/chex-convert, chex-inspect, chex-predict, chex-synth, chex-train
images     $folder
shards     $out
END
if [ -n "$run" ]; then
    cat << END
run        $run: auroc-test.svg, best.safetensors, predictions-*.csv

next       export PATH=$build:\$PATH
           chex-inspect labels $out
           chex-inspect sheet -o sheet.png --where Effusion --random 24 $out
           man $source/man/chex-train.1
END
else
    cat << END

next       export PATH=$build:\$PATH
           chex-inspect report -o report.html $out
           chex-train -n -d $out -o runs/a        # the plan of a training run, and the memory it needs
           chex-train -d $out -o runs/a
END
    # As many ranks as there are cores, four at most; they share the 64 images of a step.
    ranks=4
    while [ "$ranks" -gt "$(slots)" ]; do ranks=$((ranks / 2)); done
    if [ "$ranks" -gt 1 ] && ! make -C "$build" -s --no-print-directory missing-suites | grep -q MPI; then
        root=
        [ "$(id -u)" -ne 0 ] || root=' --allow-run-as-root'
        batch=$((64 / ranks))
        cat << END
           mpirun$root -np $ranks --map-by socket chex-train -d $out -o runs/a --batch $batch
           srun --mpi=pmix -K -n $ranks -c 16 chex-train -d $out -o runs/a --batch $batch
END
    fi
    cat << END
           doc/cluster.md has a job script for Slurm that resumes a stopped run
END
fi
