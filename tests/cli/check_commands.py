#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Command lines as data: words, exit code, what is said, which files are there afterwards (tests/cli/commands/*.txt).

    check_commands.py [PATTERN]     only the cases whose name matches the regular expression

A file is a list of cases.  Each case runs in an empty folder of its own, line by line:

    let NAME WORDS              from here on, in the whole file, NAME at the front of a command stands for WORDS
    == NAME                     a case begins
    $ COMMAND                   preparation, by the shell, which must succeed
    2 chex-convert --size 0     a command of ours, words as in a shell but without expansion, and its exit code
    3 denied chex-inspect f     the same; permissions of files hold although root runs the tests
        > REGEX                 is in standard error; ">" alone: standard error is empty
        1> REGEX                is in standard output; "1>" alone: standard output is empty
        ! REGEX                 is in neither
        + PATH                  is there afterwards
        - PATH                  is not
        = PATH PATH             these two files or folders hold the same
    all ...                     one of these lines, for each of the commands of the case that follow

@NAME in words is the folder of a fixture (fixtures.py), which nobody changes; @cwd is the folder of the case.
"""
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys

from fixtures import expand, fixture
from support import PATIENCE, SOURCE, Cases, Skip, program, same_tree, slurp, tail

MARKS = (">", "1>", "!", "+", "-", "=")


class Command:
    """One command of a case and what must be true after it; code None: a preparation."""

    def __init__(self, number, code, words):
        self.number, self.code, self.words, self.checks = number, code, words, []


def parse(path):
    """(name, commands) of each case of a file."""
    short, cases, everywhere = {}, [], []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            first, _, rest = line.strip().partition(" ")
            rest = rest.strip()
            if not first or first.startswith("#"):
                continue
            if first == "let":
                name, _, words = rest.partition(" ")
                short[name] = words
            elif first == "==":
                everywhere = []
                cases.append((rest, []))
            elif first == "all":
                everywhere.append(tuple(rest.partition(" ")[::2]))
            elif first == "$":
                cases[-1][1].append(Command(number, None, rest))
            elif first in MARKS:
                cases[-1][1][-1].checks.append((first, rest))
            elif first.isdigit():
                denied, rest = ("denied ", rest[len("denied "):]) if rest.startswith("denied ") else ("", rest)
                word, _, others = rest.partition(" ")
                command = Command(number, int(first), f"{denied}{short.get(word, word)} {others}")
                command.checks.extend(everywhere)
                cases[-1][1].append(command)
            else:
                raise SystemExit(f"{path}:{number}: neither a command nor a check: {line.strip()}")
    return cases


def words_of(text, work):
    words = [work + word[4:] if word.startswith("@cwd") else expand(word) for word in shlex.split(text)]
    if words[0] != "denied":
        return [program(words[0]), *words[1:]]
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        raise Skip("root may read all files, and there is no setpriv")
    as_user = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    return [*as_user, program(words[1]), *words[2:]]


def compare(done, work, mark, text):
    """A sentence that says what is wrong, or None."""
    if mark in (">", "1>"):
        said = done.stderr if mark == ">" else done.stdout
        good = re.search(text, said, re.M) if text else not said
        return None if good else f"no /{text}/ in" if text else "not empty:"
    if mark == "!":
        return f"/{text}/ in" if re.search(text, done.stderr + done.stdout, re.M) else None
    if mark == "=":
        a, b = (os.path.join(work, expand(path)) for path in text.split())
        if os.path.isfile(a):
            return None if slurp(a) == slurp(b) else f"{a} and {b} differ:"
        same_tree(a, b)
        return None
    if os.path.lexists(os.path.join(work, text)) != (mark == "+"):
        return f"'{text}' is {'not ' * (mark == '+')}there:"
    return None


def run_case(file, commands, work):
    environment = dict(os.environ, LC_ALL="C", TERM="dumb")
    for command in commands:
        where = f"{file}:{command.number}: {command.words}"
        words = ["sh", "-ec", re.sub(r"@(\w+)", lambda m: shlex.quote(fixture(m[1])), command.words)] \
            if command.code is None else words_of(command.words, work)
        done = subprocess.run(words, cwd=work, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              encoding="utf-8", errors="replace", timeout=PATIENCE, check=False)
        said = "\n" + tail(done.stderr + done.stdout)
        assert done.returncode == (command.code or 0), f"{where}: exit code {done.returncode}{said}"
        for mark, text in command.checks:
            wrong = compare(done, work, mark, text)
            assert not wrong, f"{where}: {wrong}{said}"


def main():
    cases = Cases()
    for path in sorted(glob.glob(os.path.join(SOURCE, "tests", "cli", "commands", "*.txt"))):
        file = os.path.basename(path)
        for name, commands in parse(path):
            cases(f"{file[:-4]}: {name}")(lambda work, f=file, c=commands: run_case(f, c, work))
    return cases.main()


if __name__ == "__main__":
    sys.exit(main())
