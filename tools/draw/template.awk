# template.awk - converts a template to C: an array of its lines, each with its newline; NULL ends it
#
#     awk -v name=report_template -f template.awk page.html
#
# It removes indentation and lines that begin with a comment.
#
# SPDX-License-Identifier: Apache-2.0
BEGIN {
    print "/* Made by template.awk. */"
    print "#include <stddef.h>"
    print ""
    print "extern const char *const " name "[];"
    print "const char *const " name "[] = {"
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
