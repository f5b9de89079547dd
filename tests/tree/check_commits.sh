#!/bin/sh
# check_commits.sh - the form of the commit messages since a given commit: see CONTRIBUTING.md, "Commits"
#
#     check_commits.sh [SINCE]     the last line counts the commits that passed and failed
#
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$(dirname "$0")/../.."
since=${1:-9c8b391273e0}
git rev-parse --quiet --verify "$since^{commit}" > /dev/null || {
    echo "skip commits: the history does not contain $since"
    exit 77
}

# faults COMMIT: one line for each rule that its message breaks.  The first word after the area must not be a participle
# or a third person; English has too many verbs for a list of imperatives.
faults() {
    git log -1 --format=%B "$1" | awk -v parents="$(git log -1 --format=%P "$1" | wc -w)" '
        NR == 1 {
            if (parents > 1) print "is a merge"
            if (length($0) > 72) print "has a subject of " length($0) " characters; at most 72"
            if ($0 !~ /^[A-Za-z0-9_.\/,{} -]+: [a-z]/) print "has no `area: verb`"
            verb = $0
            sub(/^[^:]*: */, "", verb)
            sub(/ .*/, "", verb)
            if (verb ~ /(ed|ing|[^s]s)$/ && verb !~ /^(need|embed|feed|seed|bring|focus|discuss)$/)
                print "has no imperative after the area: " verb
        }
        NR > 2 && NF { body = 1 }
        NR == 2 && NF { print "has no empty line after the subject" }
        END { if (!body) print "has no body that gives the reason" }'
}

passed=0 failed=0
for commit in $(git rev-list "$since..HEAD"); do
    found=$(faults "$commit")
    if [ -z "$found" ]; then
        passed=$((passed + 1))
        continue
    fi
    failed=$((failed + 1))
    echo "FAIL commit $(git log -1 --format='%h "%s"' "$commit")"
    echo "$found" | sed 's/^/    /'
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
