#!/bin/bash
# analyze.sh SOURCE BUILD [ANALYZER...] - static analysis of the whole code; any finding fails
#
# `make analyze` calls this with all three: gcc (-fanalyzer), clang (--analyze), cppcheck.  Compiler options come from
# the Makefile by the environment: CPPFLAGS, JOBS; ANALYZE_FILES limits the files.  What a tool says wrongly stands in
# analyze.txt, with the reason.
#
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
source=$1 build=$2
shift 2
[ $# -gt 0 ] || set -- gcc clang cppcheck
cd "$source" || exit 2
jobs=${JOBS:-2}
passed=0 failed=0 skipped=0
# shellcheck disable=SC2206  # patterns
sources=(${ANALYZE_FILES:-lib/*/*.c train/[!c]*/*.c train/c[ho]*/*.c train/cpu/[!k]*.c train/cpu/kernels_best.c
    train/cuda/*.c train/cuda/[!k]*/*.c train/cuda/kernels/launch.c
    tools/*.c tools/*/*.c tools/*/*/*.c tests/*.c tests/lib/*.c tests/lib/*/*.c tests/train/*/*.c tests/cli/*.c
    tests/ranks/*.c tests/fuzz/*.c tests/fakes/comm/*.c tests/fakes/device/*.c tests/cuda/run/*.c
    bench/*.c doc/example.c})
# shellcheck disable=SC2206  # words
mkdir -p "$build/analyze-include"
cp lib/chex.h "$build/analyze-include/" # as installed, for doc/example.c
# shellcheck disable=SC2206  # words
includes=(-I"$build" -I"$build/analyze-include" -iquote lib -iquote train -iquote tools -iquote tests
    -iquote tests/cuda/device -Itests/emulator -Itests/fakes/cudnn -Itests/fakes/nccl ${CPPFLAGS:-})

# A finding is a line with "warning:" or "error:" that ends with the check's name in brackets; those of analyze.txt are
# none.
findings() {
    awk -F'|' -v tool="$1" '
        function matches(file, patterns,    n, p, i) {
            n = split(patterns, p, " ")
            for (i = 1; i <= n; i++) {
                gsub(/[.+]/, "\\\\&", p[i])
                gsub(/\*/, ".*", p[i])
                if (file ~ "^" p[i] "$")
                    return 1
            }
            return 0
        }
        FNR == NR {
            if ($1 == tool && NF == 4) {
                files[++count] = $2
                check[count] = $3
            }
            next
        }
        /: (fatal )?(warning|error): / {
            file = $0
            sub(/:.*/, "", file)
            name = $0
            sub(/\]$/, "", name)
            sub(/.*\[/, "", name)
            for (i = 1; i <= count; i++)
                if (matches(file, files[i]) && matches(name, check[i]))
                    next
            print
        }' tests/analysis/analyze.txt "$2"
}

# each NAME COMMAND...: run COMMAND FILE for every source.
each() {
    local name=$1 log=$build/analyze-$1.log found
    shift
    printf '%s\0' "${sources[@]}" | xargs -0 -n 1 -P "$jobs" "$@" > "$log" 2>&1
    found=$(findings "$name" "$log")
    if [ -n "$found" ]; then
        echo "$found"
        echo "FAIL $name (all of it: $log)"
        failed=$((failed + 1))
    elif grep -qE '^(xargs: |.*: command not found)' "$log"; then
        cat "$log"
        failed=$((failed + 1))
    else
        echo "$name: ${#sources[@]} files, no findings but those of tests/analysis/analyze.txt"
        passed=$((passed + 1))
    fi
}

have() {
    command -v "$1" > /dev/null && return
    echo "skip $1: not installed"
    skipped=$((skipped + 1))
    return 1
}

for tool; do
    case $tool in
    gcc)
        have gcc && each gcc nice gcc -std=gnu11 -D_GNU_SOURCE -O1 -fanalyzer -Wconversion -Wsign-conversion \
            -c -o /dev/null "${includes[@]}"
        ;;
    clang)
        have clang && each clang nice clang -std=gnu11 -D_GNU_SOURCE --analyze --analyzer-output text "${includes[@]}"
        ;;
    cppcheck)
        have cppcheck && each cppcheck nice cppcheck --quiet --std=c11 --language=c --inline-suppr \
            --enable=warning,performance,portability --suppress=missingIncludeSystem -D_GNU_SOURCE \
            --template='{file}:{line}: {severity}: {message} [{id}]' -I"$build" -Ilib -Itrain -Itools -Itests \
            -DPROTOBUF_C_VERSION_NUMBER=1999999 -DPROTOBUF_C_MIN_COMPILER_VERSION=1
        ;;
    *)
        echo "unknown analyzer '$tool'" >&2
        exit 2
        ;;
    esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
