/*
 * text.h - reads a part of a PTX text word by word, and counts lines
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef PTX_TEXT_H
#define PTX_TEXT_H

#include "core.h"

#include <algorithm>
#include <ctype.h>
#include <stdlib.h>

namespace ptx
{
class text_reader
{
  public:
    unsigned line = 0;

    explicit text_reader(const std::string &all) : text(all)
    {
    }

    void move_to(const span &s)
    {
        at = s.begin, end = s.end;
        line = (unsigned)std::count(text.begin(), text.begin() + (long)at, '\n');
    }

    /* Skips space and comments.  Returns false at the end. */
    bool skip()
    {
        for (; at < end; at++) {
            if (text.compare(at, 2, "//") == 0)
                at = text.find('\n', at);
            if (text[at] == '\n')
                line++;
            else if (!isspace((unsigned char)text[at]))
                return true;
        }
        return false;
    }

    bool begins_with(const char *word) const
    {
        return text.compare(at, strlen(word), word) == 0;
    }

    /* Takes this character.  Returns false if another one is next. */
    bool take(char c)
    {
        if (at >= end || text[at] != c)
            return false;
        at++;
        return true;
    }

    /* The text up to this character, which is passed over, with comments removed and all space as ' '. */
    std::string until(char stop)
    {
        std::string s;

        for (; at < end && text[at] != stop; at++) {
            if (text.compare(at, 2, "//") == 0)
                at = text.find('\n', at);
            if (text[at] == '\n' && stop == '\n')
                break;
            if (text[at] == '\n')
                line++;
            s += isspace((unsigned char)text[at]) ? ' ' : text[at];
        }
        if (stop == '\n')
            line++;
        at++;
        return s;
    }

    /* "NAME" of "NAME:", which is passed over; "" if no label is next. */
    std::string label()
    {
        size_t last = at;

        while (last < end && (isalnum((unsigned char)text[last]) || strchr("_$", text[last])))
            last++;
        if (last == at || text[last] != ':' || text[last + 1] == ':')
            return "";
        std::string name = text.substr(at, last - at);
        at = last + 1;
        return name;
    }

  private:
    const std::string &text;
    size_t at = 0, end = 0;
};

/* The parts between the commas that are in no brackets, without space. */
static inline std::vector<std::string>
split_list(const std::string &s)
{
    std::vector<std::string> parts;
    std::string part;
    int depth = 0;

    for (char c : s) {
        depth += strchr("{[(", c) != nullptr;
        depth -= strchr("}])", c) != nullptr;
        if (c == ',' && depth == 0) {
            parts.push_back(part);
            part.clear();
        } else if (c != ' ') {
            part += c;
        }
    }
    if (!part.empty())
        parts.push_back(part);
    return parts;
}

static inline std::vector<std::string>
split_words(const std::string &s, char separator)
{
    std::vector<std::string> words;

    for (size_t at = 0; at <= s.size();) {
        size_t last = std::min(s.find(separator, at), s.size());

        if (last > at)
            words.push_back(s.substr(at, last - at));
        at = last + 1;
    }
    return words;
}

/*
 * The bits of an integer, of 0fXXXXXXXX (float) or of 0dXXXXXXXXXXXXXXXX (double).  `width` is the bytes of a float or
 * of a double, 0 for an integer.  Returns false for anything else: 1.5, for example, does not become 1.
 */
static inline bool
read_number(const std::string &s, uint64_t &bits, unsigned &width)
{
    const char *digits = s.c_str();
    char *end;

    width = s[0] != '0' ? 0 : s[1] == 'f' || s[1] == 'F' ? 4 : s[1] == 'd' || s[1] == 'D' ? 8 : 0;
    if (width && s.size() != 2 + 2 * width)
        return false;
    if (width)
        bits = strtoull(digits + 2, &end, 16);
    else
        bits = s[0] == '-' ? (uint64_t)strtoll(digits, &end, 0) : strtoull(digits, &end, 0);
    return end != digits && (*end == 0 || (!width && strcmp(end, "U") == 0));
}
} // namespace ptx

#endif
