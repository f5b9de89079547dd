#!/bin/sh
# release_user.sh - what a user without root does with the programs of a release; check_release.sh runs it in its roots
#
# /given has the release and the libraries of MPI; $HOME is all that this user writes to.  The shards are left in
# $HOME/shards for check_release.sh.
#
# SPDX-License-Identifier: Apache-2.0
set -u
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tree/verdict.sh
. "$source/tests/tree/verdict.sh"
skipped=0
cd "$HOME" || exit 1

# step NAME COMMAND...: its output only where it fails.
step() {
    name=$1 code=0
    shift
    "$@" > log 2>&1 || code=$?
    [ "$code" -eq 0 ] || cat log
    verdict "$name" "$code"
}

unpack() {
    tar -xzf /given/programs.tar.gz && mv chex-tools-*-linux-* chex-tools
}

# Each program runs; that it names a wrong option shows that it came as far as its command line.
start() {
    for program in chex-tools/bin/*; do
        "$program" --version || return 1
        "$program" --nonsense 2>&1 | grep nonsense || return 1
    done
}

convert() {
    input=$1 out=$2
    shift 2
    "$@" chex-convert -q -i "$input" -l synth/Data_Entry_2017_v2020.csv --size 48 --shard-size 8 -o "$out"
}

archive() {
    tar -czf images.tar.gz -C synth/images . && convert images.tar.gz from-archive env || return 1
    for file in shards/*.tfrecord-*; do
        cmp "$file" "from-archive/${file##*/}" || return 1
    done
}

train() {
    chex-train -q -d shards -o run --model densenet-micro --crop 32 --batch 8 --epochs 2
}

# Without a driver: kernels are there, a plan for a GPU that is not, and the reason why none is used.
gpu() {
    chex-train --version -v | grep -E '^cuda +12\.[0-9]+, kernels for sm_' &&
        chex-train -d shards -o none --model densenet-micro --crop 32 -n --device cuda:H100 2>&1 |
        grep H100 || return 1
    refused=0
    chex-train -d shards -o none --model densenet-micro --crop 32 --device cuda || refused=$?
    [ "$refused" -eq 2 ]
}

page() {
    chex-inspect report -o page.html "$1" && grep '</html>' page.html
}

# ranks NAME VARIABLE...: two ranks of this MPI write the shards of one process.
ranks() {
    mpi=$1
    shift
    [ -x "/given/mpi/$mpi/bin/mpiexec" ] || {
        echo "skip two ranks with $mpi of PyPI: make mpi-of-pypi"
        skipped=$((skipped + 1))
        return
    }
    step "two ranks with $mpi of PyPI" convert synth/images "of-$mpi" env "LD_LIBRARY_PATH=/given/mpi/$mpi/lib" "$@" \
        "/given/mpi/$mpi/bin/mpiexec" -n 2
    step "two ranks with $mpi of PyPI: the shards of one process" diff -r shards "of-$mpi"
}

step 'the tarball unpacks' unpack
step 'all programs start' start
PATH=$HOME/chex-tools/bin:$PATH
step 'chex-synth' chex-synth -q -n 48 --size 64 -o synth
step 'chex-convert' convert synth/images shards env
step 'chex-convert from an archive: the same records' archive
step 'chex-inspect check --full' chex-inspect check --full shards
step 'chex-inspect report of a data set' page shards
step 'chex-train' train
step 'chex-inspect report of a run' page run
if [ -e "$HOME/chex-tools/share/doc/chex-tools/licenses/cuda-runtime" ]; then
    step 'chex-train for a GPU, where there is none' gpu
else
    echo 'skip chex-train for a GPU, where there is none: these programs have no CUDA'
    skipped=$((skipped + 1))
fi
ranks mpich
ranks openmpi OPAL_PREFIX=/given/mpi/openmpi PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
