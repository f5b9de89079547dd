/*
 * shell_word.c - see shell_word.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/shell_word.h"

#include "common/printable.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PLAIN "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=.,/:@%"

/* Returns whether a text has characters that a terminal must not receive; $'' quotes write them as \\NNN. */
static bool
has_hidden(const char *text)
{
    for (; *text; text += printable_look(text).bytes)
        if (printable_look(text).hidden)
            return true;
    return false;
}

static char *
put_escaped(char *to, const char *text)
{
    while (*text) {
        struct printable_character c = printable_look(text);

        for (; c.bytes > 0; c.bytes--, text++) {
            if (c.hidden)
                to += sprintf(to, "\\%03o", (unsigned char)*text);
            else if (*text == '\'' || *text == '\\')
                to += sprintf(to, "\\%c", *text);
            else
                *to++ = *text;
        }
    }
    return to;
}

static char *
put_quoted(char *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'') { /* close the quotes, add an escaped quote, reopen them */
            memcpy(to, "'\\''", 4);
            to += 4;
        } else {
            *to++ = *text;
        }
    }
    return to;
}

const char *
shell_word(const char *text, char out[SHELL_WORD])
{
    size_t length = strlen(text);
    bool hidden = has_hidden(text);
    char *to = out;

    if (length >= PATH_MAX || (length > 0 && text[0] != '-' && strspn(text, PLAIN) == length))
        return text;
    if (text[0] == '-') { /* otherwise a command takes it for an option */
        *to++ = '.';
        *to++ = '/';
    }
    if (hidden)
        *to++ = '$';
    *to++ = '\'';
    to = hidden ? put_escaped(to, text) : put_quoted(to, text);
    *to++ = '\'';
    *to = '\0';
    return out;
}

const char *
relative_path(const char *path)
{
    char here[PATH_MAX];
    size_t length;

    if (path[0] != '/' || !getcwd(here, sizeof(here)))
        return path;
    length = strlen(here);
    if (length <= 1 || strncmp(path, here, length) != 0 || (path[length] != '/' && path[length] != '\0'))
        return path;
    path += length;
    path += strspn(path, "/");
    return path[0] ? path : ".";
}
