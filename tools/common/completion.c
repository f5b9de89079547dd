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

#include "common/cli_tables.h"

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

/* ---- bash -------------------------------------------------------------------------------------------------------- */

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

/* Print the values of the options with a value, as cases of "$command $prev". */
static void
bash_cases(const struct cli_program *program, const struct cli_command *command)
{
    const struct cli_option *option[CLI_MAX_OPTIONS];
    size_t count = cli_list_options(program, command, option), i;
    const char *name = command ? command->name : "";

    for (i = 0; i < count; i++) {
        if (!option[i]->value)
            continue;
        printf("        '%s --%s'", name, option[i]->name);
        if (option[i]->letter)
            printf("|'%s -%c'", name, option[i]->letter);
        printf(")\n            ");
        bash_value(program, option[i]);
        printf("\n            return\n            ;;\n");
    }
}

/* Print "NAME) offer='--json --quiet ...' ;;". */
static void
bash_offer(const struct cli_program *program, const struct cli_command *command)
{
    const struct cli_option *option[CLI_MAX_OPTIONS];
    size_t count = cli_list_options(program, command, option), i;

    printf("        %s)\n            offer='", command ? command->name : "*");
    for (i = 0; i < count; i++)
        printf("%s--%s", i ? " " : "", option[i]->name);
    printf("'\n            ;;\n");
}

/* Print the loop that finds the command: the first word that is neither an option nor the value of a common one. */
static void
bash_command(const struct cli_program *program)
{
    const struct cli_command *const *c;
    const struct cli_option *o;
    const char *bar = "";

    printf("    for ((i = 1; i < at; i++)); do\n        case ${COMP_WORDS[i]} in\n            ");
    for (o = cli_common_options; o->name; o++) {
        if (!o->value || !cli_is_offered(program, o))
            continue;
        printf("%s--%s", bar, o->name);
        bar = "|";
    }
    for (o = cli_common_options; o->name; o++)
        if (o->value && o->letter && cli_is_offered(program, o))
            printf("|-%c", o->letter);
    printf(")\n                [[ ${COMP_WORDS[i+1]} == = ]] && ((i++))\n                ((i++))\n"
           "                ;;\n            ");
    for (c = program->commands; *c; c++)
        printf("%s|", (*c)->name);
    printf(
        "help)\n                command=${COMP_WORDS[i]}\n                break\n                ;;\n"
        "            -*) ;;\n            *)\n                operand=yes\n                break\n                ;;\n"
        "        esac\n    done\n");
}

static void
bash_operand(const struct cli_program *program)
{
    const struct cli_command *const *c;

    printf("    compopt -o filenames\n    mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n");
    if (!program->commands)
        return;
    printf("    if [[ -z $command$operand || $command == help ]]; then\n"
           "        [[ $command ]] && COMPREPLY=()\n"
           "        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W '");
    for (c = program->commands; *c; c++)
        printf("%s%s", c == program->commands ? "" : " ", (*c)->name);
    printf(" help' -- \"$cur\")\n    fi\n");
}

static void
print_bash(const struct cli_program *program)
{
    const struct cli_command *const *c;

    printf("# bash completion for %s, made by %s --completion bash\n_", program->name, program->name);
    print_identifier(program->name);
    printf("()\n{\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} at=$COMP_CWORD prev head= i command= operand= offer\n"
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
           "    done\n");
    if (program->commands)
        bash_command(program);
    printf("    case \"$command $prev\" in\n");
    bash_cases(program, NULL);
    for (c = program->commands; c && *c; c++)
        bash_cases(program, *c);
    printf("    esac\n    case $command in\n");
    for (c = program->commands; c && *c; c++)
        bash_offer(program, *c);
    bash_offer(program, NULL);
    printf("    esac\n    if [[ $cur == -* && $prev != -- ]]; then\n"
           "        mapfile -t COMPREPLY < <(compgen -W \"$offer\" -- \"$cur\")\n        return\n    fi\n");
    bash_operand(program);
    printf("}\ncomplete -F _");
    print_identifier(program->name);
    printf(" %s\n", program->name);
}

/* ---- zsh --------------------------------------------------------------------------------------------------------- */

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

/* Print the options as arguments of _arguments. */
static void
zsh_options(const struct cli_program *program, const struct cli_command *command)
{
    const struct cli_option *option[CLI_MAX_OPTIONS];
    size_t count = cli_list_options(program, command, option), i;

    for (i = 0; i < count; i++) {
        const struct cli_option *o = option[i];
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
}

/* Options after the first operand (-A) belong to the command. */
static void
zsh_commands(const struct cli_program *program)
{
    const struct cli_command *const *c;

    printf("local curcontext=$curcontext state line\ntypeset -A opt_args\nlocal -a subcommands=(");
    for (c = program->commands; *c; c++) {
        printf("\n    '%s:", (*c)->name);
        print_meaning((*c)->summary, "'\\''", ":\\");
        printf("'");
    }
    printf("\n    'help:print the options of a command')\n_arguments -C -s -S -A '-*'");
    zsh_options(program, NULL);
    printf(" \\\n    '1: :->first' '*:: :->rest' && return\n"
           "if [[ $state == first ]]; then\n"
           "    _describe -t commands command subcommands\n    _files\n"
           "    return\nfi\ncase $words[1] in\n");
    for (c = program->commands; *c; c++) {
        printf("%s)\n    _arguments -s -S", (*c)->name);
        zsh_options(program, *c);
        printf(" \\\n    '*:PATH:_files'\n    ;;\n");
    }
    printf("help)\n    _describe -t commands command subcommands\n    ;;\n*)\n    _arguments -s -S");
    zsh_options(program, NULL);
    printf(" \\\n    '*:PATH:_files'\nesac\n");
}

static void
print_zsh(const struct cli_program *program)
{
    printf("#compdef %s\n# zsh completion, made by %s --completion zsh\n", program->name, program->name);
    if (program->commands) {
        zsh_commands(program);
        return;
    }
    printf("_arguments -s -S");
    zsh_options(program, NULL);
    printf(" \\\n    '*:PATH:_files'\n");
}

/* ---- fish -------------------------------------------------------------------------------------------------------- */

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

/* Print a line for an option: of one command, or of the whole program if it is NULL. */
static void
fish_option(const struct cli_program *program, const struct cli_command *command, const struct cli_option *o)
{
    printf("complete -c %s", program->name);
    if (command)
        printf(" -n '__fish_seen_subcommand_from %s'", command->name);
    if (o->letter)
        printf(" -s %c", o->letter);
    printf(" -l %s", o->name);
    fish_value(program, o);
    printf(" -d '");
    print_meaning(o->help, "\\'", "\\");
    printf("'\n");
}

static void
fish_command(const struct cli_program *program, const char *name, const char *summary)
{
    printf("complete -c %s -n __fish_use_subcommand -a %s -d '", program->name, name);
    print_meaning(summary, "\\'", "\\");
    printf("'\n");
}

static void
print_fish(const struct cli_program *program)
{
    const struct cli_option *common[CLI_MAX_OPTIONS], *o;
    const struct cli_command *const *c;
    size_t count = cli_list_options(program, NULL, common), i;

    printf("# fish completion for %s, made by %s --completion fish\n", program->name, program->name);
    for (c = program->commands; c && *c; c++)
        fish_command(program, (*c)->name, (*c)->summary);
    if (program->commands) {
        fish_command(program, "help", "print the options of a command");
        printf("complete -c %s -n '__fish_seen_subcommand_from help' -x -a '", program->name);
        for (c = program->commands; *c; c++)
            printf("%s%s", c == program->commands ? "" : " ", (*c)->name);
        printf("'\n");
    }
    for (i = 0; i < count; i++)
        fish_option(program, NULL, common[i]);
    for (c = program->commands; c && *c; c++)
        for (o = (*c)->options; o->name; o++)
            fish_option(program, *c, o);
}

void
completion_print(const struct cli_program *program, const char *shell)
{
    if (strcmp(shell, "bash") == 0)
        print_bash(program);
    else if (strcmp(shell, "zsh") == 0)
        print_zsh(program);
    else
        print_fish(program);
}
