/*
 * completion.c - see completion.h
 *
 * The scripts use only features of the shells themselves.  They do not need packages such as bash-completion, whose
 * folders are only the place where the scripts are installed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "common/completion.h"

#include <string.h>

enum value_kind { KIND_NONE, KIND_WORDS, KIND_LIST, KIND_FILE, KIND_DIR, KIND_OTHER };

/* Returns the values of an option, also of a comma list, or NULL. */
static const char *const *
words_of(const struct cli_program *program, const struct cli_option *o, bool *list)
{
    const struct cli_words *w;

    *list = false;
    for (w = program->words; w && w->name; w++) {
        if (strcmp(w->name, o->name) == 0) {
            *list = w->list;
            return w->words;
        }
    }
    return o->choices;
}

static enum value_kind
kind_of(const struct cli_program *program, const struct cli_option *o)
{
    bool list;

    if (!o->value)
        return KIND_NONE;
    if (words_of(program, o, &list))
        return list ? KIND_LIST : KIND_WORDS;
    if (strcmp(o->value, "DIR") == 0)
        return KIND_DIR;
    return strcmp(o->value, "FILE") == 0 || strcmp(o->value, "PATH") == 0 ? KIND_FILE : KIND_OTHER;
}

static void
print_words(const char *const *words, const char *separator)
{
    size_t i;

    for (i = 0; words[i]; i++)
        printf("%s%s", i > 0 ? separator : "", words[i]);
}

/* Prints the name as part of a function name. */
static void
print_identifier(const char *name)
{
    for (; *name; name++)
        putchar(*name == '-' ? '_' : *name);
}

/* Finds the end of the meaning in a help text: before " (", ": " or "; ". */
static const char *
end_of_meaning(const char *help)
{
    const char *end = help;

    while (*end && strncmp(end, " (", 2) != 0 && strncmp(end, ": ", 2) != 0 && strncmp(end, "; ", 2) != 0)
        end++;
    return end;
}

/*
 * Print the meaning of an option for a single-quoted string.  apostrophe: its escaped form in such a string.
 * special: characters that need a backslash.
 */
static void
print_meaning(const char *help, const char *apostrophe, const char *special)
{
    const char *end = end_of_meaning(help);

    for (; help < end; help++) {
        if (*help == '\'')
            printf("%s", apostrophe);
        else
            printf("%s%c", strchr(special, *help) ? "\\" : "", *help);
    }
}

/* ---- bash ------------------------------------------------------------------------------------------------------ */

static void
bash_value(const struct cli_program *program, const struct cli_option *o)
{
    bool list;
    const char *const *words = words_of(program, o, &list);

    switch (kind_of(program, o)) {
    case KIND_WORDS:
        printf("mapfile -t COMPREPLY < <(compgen -W '");
        print_words(words, " ");
        printf("' -- \"$cur\")");
        break;
    case KIND_LIST:
        printf("[[ $cur == *,* ]] && head=${cur%%,*},\n            compopt -o nospace\n"
               "            mapfile -t COMPREPLY < <(compgen -P \"$head\" -W '");
        print_words(words, " ");
        printf("' -- \"${cur##*,}\")");
        break;
    case KIND_FILE:
        printf("compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")");
        break;
    case KIND_DIR:
        printf("compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")");
        break;
    case KIND_NONE:
    case KIND_OTHER:
        printf(":");
    }
}

static void
print_bash(const struct cli_program *program, const struct cli_option *const *options, size_t count)
{
    size_t i;

    printf("# bash completion for %s, made by %s --completion bash\n_", program->name, program->name);
    print_identifier(program->name);
    printf("()\n{\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} at=$COMP_CWORD prev head= i\n"
           "    COMPREPLY=()\n"
           "    # --option=value comes as three words\n"
           "    if [[ $cur == = ]]; then\n"
           "        cur=\n"
           "    elif [[ ${COMP_WORDS[at-1]} == = ]]; then\n"
           "        at=$((at - 1))\n"
           "    fi\n"
           "    prev=${COMP_WORDS[at-1]}\n"
           "    for ((i = 1; i < at; i++)); do\n"
           "        [[ ${COMP_WORDS[i]} == -- ]] && prev=--\n"
           "    done\n"
           "    case $prev in\n");
    for (i = 0; i < count; i++) {
        if (!options[i]->value)
            continue;
        printf("        --%s", options[i]->name);
        if (options[i]->letter)
            printf("|-%c", options[i]->letter);
        printf(")\n            ");
        bash_value(program, options[i]);
        printf("\n            return\n            ;;\n");
    }
    printf("    esac\n    if [[ $cur == -* && $prev != -- ]]; then\n"
           "        mapfile -t COMPREPLY < <(compgen -W '");
    for (i = 0; i < count; i++)
        printf("%s--%s", i ? " " : "", options[i]->name);
    printf("' -- \"$cur\")\n    else\n        compopt -o filenames\n"
           "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n    fi\n}\ncomplete -F _");
    print_identifier(program->name);
    printf(" %s\n", program->name);
}

/* ---- zsh ------------------------------------------------------------------------------------------------------- */

static void
zsh_value(const struct cli_program *program, const struct cli_option *o)
{
    bool list;
    const char *const *words = words_of(program, o, &list);

    switch (kind_of(program, o)) {
    case KIND_WORDS:
        printf(":%s:(", o->value);
        print_words(words, " ");
        printf(")");
        break;
    case KIND_LIST:
        printf(":%s:_sequence compadd - ", o->value);
        print_words(words, " ");
        break;
    case KIND_FILE:
        printf(":%s:_files", o->value);
        break;
    case KIND_DIR:
        printf(":%s:_files -/", o->value);
        break;
    case KIND_OTHER:
        printf(":%s: ", o->value);
        break;
    case KIND_NONE:
        break;
    }
}

static void
print_zsh(const struct cli_program *program, const struct cli_option *const *options, size_t count)
{
    size_t i;

    printf("#compdef %s\n# zsh completion, made by %s --completion zsh\n_arguments -s -S", program->name,
           program->name);
    for (i = 0; i < count; i++) {
        const struct cli_option *o = options[i];
        const char *glue = o->value ? "=" : "";

        /* Offer an option with a value repeatedly, a flag once. */
        if (o->letter && o->value)
            printf(" \\\n    '*'{-%c+,--%s%s}'[", o->letter, o->name, glue);
        else if (o->letter)
            printf(" \\\n    '(-%c --%s)'{-%c,--%s}'[", o->letter, o->name, o->letter, o->name);
        else
            printf(" \\\n    '%s--%s%s[", o->value ? "*" : "", o->name, glue);
        print_meaning(o->help, "'\\''", "[]:\\");
        printf("]");
        zsh_value(program, o);
        printf("'");
    }
    printf(" \\\n    '*:PATH:_files'\n");
}

/* ---- fish ------------------------------------------------------------------------------------------------------ */

static void
fish_value(const struct cli_program *program, const struct cli_option *o)
{
    bool list;
    const char *const *words = words_of(program, o, &list);

    switch (kind_of(program, o)) {
    case KIND_WORDS:
        printf(" -x -a '");
        print_words(words, " ");
        printf("'");
        break;
    case KIND_LIST:
        printf(" -x -a '(set -l head (commandline -ct | string replace -r \"^--[^=]*=\" \"\" | string replace -r "
               "\"[^,]*\\$\" \"\"); printf \"%%s\\n\" \"$head\"{");
        print_words(words, ",");
        printf("})'");
        break;
    case KIND_FILE:
        printf(" -r -F");
        break;
    case KIND_DIR:
        printf(" -x -a '(__fish_complete_directories (commandline -ct))'");
        break;
    case KIND_OTHER:
        printf(" -x");
        break;
    case KIND_NONE:
        break;
    }
}

static void
print_fish(const struct cli_program *program, const struct cli_option *const *options, size_t count)
{
    size_t i;

    printf("# fish completion for %s, made by %s --completion fish\n", program->name, program->name);
    for (i = 0; i < count; i++) {
        printf("complete -c %s", program->name);
        if (options[i]->letter)
            printf(" -s %c", options[i]->letter);
        printf(" -l %s", options[i]->name);
        fish_value(program, options[i]);
        printf(" -d '");
        print_meaning(options[i]->help, "\\'", "\\");
        printf("'\n");
    }
}

void
completion_print(const struct cli_program *program, const struct cli_option *const *options, size_t count,
                 const char *shell)
{
    if (strcmp(shell, "bash") == 0)
        print_bash(program, options, count);
    else if (strcmp(shell, "zsh") == 0)
        print_zsh(program, options, count);
    else
        print_fish(program, options, count);
}
