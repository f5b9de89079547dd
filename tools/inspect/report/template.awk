# template.awk - converts the template of a page to C: an array of its lines, each with its newline; NULL ends it
#
#     awk -f template.awk page.html
#
# SPDX-License-Identifier: Apache-2.0
BEGIN {
    print "/* Made from page.html by template.awk. */"
    print "#include \"inspect/report/template.h\""
    print ""
    print "#include <stddef.h>"
    print ""
    print "const char *const report_template[] = {"
}
{
    sub(/^ +/, "")
    if ($0 ~ /^(<!-- |\/\* )/)
        next
    text = ""
    for (i = 1; i <= length($0); i++) {
        c = substr($0, i, 1)
        text = text (c == "\\" || c == "\"" ? "\\" : "") c
    }
    print "    \"" text "\\n\","
}
END {
    print "    NULL,"
    print "};"
}
