/*
 * module.cc - reads files of PTX, and finds their kernels and functions
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core.h"

#include <algorithm>
#include <dirent.h>
#include <fstream>
#include <sstream>
#include <stdio.h>
#include <stdlib.h>

namespace ptx
{
static std::vector<module> &modules = *new std::vector<module>; /* never destroyed: used until the process ends */

static void
skip_space(const std::string &text, size_t &at)
{
    while (isspace((unsigned char)text[at]))
        at++;
}

/* `at` is after ".func": passes over "(result)".  Returns false if there is none. */
static bool
skip_result(const std::string &text, size_t &at)
{
    skip_space(text, at);
    if (text[at] != '(')
        return false;
    at = text.find(')', at) + 1;
    skip_space(text, at);
    return true;
}

/* Adds the bodies that begin with this word.  Functions without a result are left out; nvcc makes none here. */
static void
find_bodies(const std::string &text, const char *word, bool functions, std::map<std::string, span> &to)
{
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos;) {
        size_t name = at + strlen(word), brace, end;

        at++;
        if (functions && !skip_result(text, name))
            continue;
        brace = text.find("\n{", name);
        if (text.find("\n;", name) < brace)
            continue; /* a declaration */
        for (end = name; isalnum((unsigned char)text[end]) || text[end] == '_' || text[end] == '$';)
            end++;
        to[text.substr(name, end - name)] = {name, text.find("\n}", brace) + 2};
    }
}

static void
find_sources(module &m)
{
    for (size_t at = 0; (at = m.text.find(".file\t", at)) != std::string::npos; at++) {
        unsigned number;
        char path[1000];

        if (sscanf(m.text.c_str() + at, ".file %u \"%999[^\"]\"", &number, path) == 2)
            m.source[number] = path;
    }
}

static void
add_module(const std::string &name, const std::string &text)
{
    module m = {name, "\n" + text, {}, {}, {}};

    find_bodies(m.text, "\n.visible .entry ", false, m.entries);
    find_bodies(m.text, "\n.func ", true, m.functions);
    find_sources(m);
    modules.push_back(m);
}

/* Reads the files of PTX_FILES that are of this architecture. */
static void
read_files()
{
    const char *folder = getenv("PTX_FILES");
    std::vector<std::string> names;
    DIR *d;

    if (!folder)
        return;
    d = opendir(folder);
    if (!d) {
        perror(folder);
        exit(3);
    }
    while (struct dirent *e = readdir(d))
        if (strtoul(e->d_name, nullptr, 10) == setting().arch && strstr(e->d_name, ".ptx"))
            names.push_back(e->d_name);
    closedir(d);
    std::sort(names.begin(), names.end());
    for (const std::string &name : names) {
        std::ifstream in(std::string(folder) + "/" + name);
        std::stringstream text;

        text << in.rdbuf();
        add_module(name, text.str());
    }
}

const kernel *
find_kernel(const char *name)
{
    static auto &known = *new std::map<std::string, kernel>;
    static const bool have_read = (read_files(), true);
    auto there = known.find(name);

    (void)have_read;
    if (there != known.end())
        return &there->second;
    for (const module &m : modules)
        if (m.entries.count(name)) {
            parse_kernel(m, name, known[name]);
            return &known[name];
        }
    return nullptr;
}
} // namespace ptx

void
ptx_load(const char *text, const char *name)
{
    ptx::add_module(name, text);
}

bool
ptx_has(const char *kernel)
{
    return ptx::find_kernel(kernel) != nullptr;
}
