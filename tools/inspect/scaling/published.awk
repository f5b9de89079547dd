# published.awk - converts published.csv to C: an array of its rows; a row without a study ends it
#
#     awk -f published.awk published.csv
#
# The source is the only quoted field; its commas stay.
#
# SPDX-License-Identifier: Apache-2.0
function real(text) {
    return text == "" ? "(double)NAN" : text
}
BEGIN {
    print "/* Made from published.csv by published.awk. */"
    print "#include \"inspect/scaling/scaling.h\""
    print ""
    print "#include <math.h>"
    print ""
    print "const struct published published[] = {"
}
NR > 1 {
    split($0, quoted, "\"")
    split(quoted[3], number, ",")
    sub(/,$/, "", quoted[1])
    printf "    {\"%s\", \"%s\", %d, %s, %s},\n", quoted[1], quoted[2], number[2], real(number[3]), real(number[4])
}
END {
    print "    {NULL, NULL, 0, 0, 0},"
    print "};"
}
