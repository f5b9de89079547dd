#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completion in bash, zsh and fish: each shell is run with the script of --completion and asked.

    check_completion.py [PATTERN]

A shell that is not installed is skipped by name.
"""
import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time

from support import BUILD, FINDINGS, PATIENCE, Cases, Skip, helps, program, run, slurp, write

case = Cases()
TOOLS = ["chex-convert", "chex-inspect", "chex-predict", "chex-synth", "chex-train"]


def shell(name):
    path = shutil.which(name)
    if not path:
        raise Skip(f"{name} is not installed")
    return path


def script(tool, kind, folder, name):
    text = run([program(tool), "--completion", kind]).stdout
    return write(os.path.join(folder, name), text)


def commands():
    """Each command line that has options of its own, "chex-inspect list", and its --help."""
    return {f"{tool} {command}".strip(): text for tool in TOOLS for command, text in helps(tool).items()}


def options(text):
    return set(re.findall(r"^  (?:-\w,|   ) (--[\w-]+)", text, re.M))


def summaries():
    """{command: its line in chex-inspect --help}"""
    part = helps("chex-inspect")[""].partition("\nCommands\n")[2].partition("\n\n")[0]
    return dict(re.findall(r"^  (\w+)(?: COMMAND)?  +(.*)$", part, re.M))


def files(work):
    """A folder with files to complete."""
    folder = os.path.join(work, "files")
    os.makedirs(os.path.join(folder, "images"))
    for name in ("labels.csv", "with blank.csv"):
        write(os.path.join(folder, name), "")
    return folder


def bash(work, line):
    """What bash offers at the end of the line, asked as readline does."""
    tool = line.split()[0]
    path = script(tool, "bash", work, "script")
    # bash splits words at '=' too (COMP_WORDBREAKS)
    words = re.findall(r"=|[^\s=]+", line) + ([""] if line.endswith(" ") else [])
    quoted = " ".join("'" + w + "'" for w in words)
    code = f"""source '{path}'
compopt() {{ :; }}   # only within readline
COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}
f=$(complete -p {tool}); f=${{f#*-F }}; f=${{f%% *}}
$f; printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run([shell("bash"), "--norc", "--noprofile", "-c", code], cwd=os.path.join(work, "files"),
                          capture_output=True, text=True, check=True)
    assert not done.stderr, done.stderr
    return set(done.stdout.splitlines()) - {""}


def fish(work, line):
    """What fish offers at the end of the line: {word: its description}."""
    tool = line.split()[0]
    path = script(tool, "fish", work, "script")
    done = subprocess.run([shell("fish"), "--no-config", "-c", f"source '{path}'; complete -C '{line}'"],
                          cwd=os.path.join(work, "files"), capture_output=True, text=True,
                          env={**os.environ, "HOME": work}, check=True)
    assert not done.stderr, done.stderr
    return dict((found + "\t").split("\t")[:2] for found in done.stdout.splitlines())


class Terminal:
    """An interactive shell on a pseudo terminal."""

    def __init__(self, command, cwd, environment):
        pid, self.master = pty.fork()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 200, 200, 0, 0))  # no list is paged
            os.chdir(cwd)
            os.execve(command[0], command, environment)
        self.pid = pid

    def send(self, text):
        os.write(self.master, text.encode())

    def until(self, pattern):
        """What it writes, up to the pattern."""
        got, end = "", time.monotonic() + PATIENCE
        while not re.search(pattern, got):
            assert time.monotonic() < end, f"no /{pattern}/ in {got[-500:]!r}"
            if select.select([self.master], [], [], 0.1)[0]:
                got += os.read(self.master, 65536).decode("utf-8", "replace")
        return got

    def close(self):
        os.close(self.master)
        os.waitpid(self.pid, 0)


def zsh(work, line):
    """The line after a tab in an interactive zsh, and the text that it shows."""
    folder = os.path.join(work, "functions")
    os.makedirs(folder, exist_ok=True)
    for tool in TOOLS:
        script(tool, "zsh", folder, "_" + tool)
    environment = {"PATH": os.path.abspath(BUILD) + ":" + os.environ["PATH"], "HOME": work, "TERM": "dumb",
                   "LC_ALL": "C"}
    terminal = Terminal([shell("zsh"), "-f", "-i"], os.path.join(work, "files"), environment)
    try:
        terminal.send(f"fpath=('{folder}' $fpath); autoload -Uz compinit; compinit -u -d '{work}/dump'; "
                      "setopt nolistbeep nobeep; LISTMAX=0; zstyle ':completion:*' list-prompt ''; "
                      "show() { print; print -r -- \"BUFFER<$BUFFER>\"; }; zle -N show; bindkey '^G' show; "
                      "PS1=; print re''ady\n")
        terminal.until("ready\r")
        terminal.send(line + "\t\x07")
        got = terminal.until(r"BUFFER<[^>]*>")
    finally:
        terminal.close()
    return re.findall(r"BUFFER<([^>]*)>", got)[-1], re.sub(r"\x1b\[[\d;?]*\w", "", got)


def words(text):
    return set(re.findall(r"[\w.=-]+", text))


def meanings(text):
    """{option: the meaning in --help}: its text up to the values, conditions and default."""
    found = re.findall(r"^  (?:-\w,|   ) (--[\w-]+)(?: \S+)?\s+((?:.+)(?:\n {28}.+)*)", text, re.M)
    return {name: re.split(r" \(|: |; ", " ".join(help_text.split()))[0] for name, help_text in found}


@case("bash offers every option of --help, words, lists, files and folders")
def _(work):
    folder = files(work)
    for line, text in commands().items():
        assert bash(work, line + " -") == options(text), line
    assert bash(work, "chex-convert --resize ") == {"bilinear", "area", "lanczos", "none"}
    assert bash(work, "chex-convert --resize=bil") == {"bilinear"}
    assert bash(work, "chex-convert --resize=") == {"bilinear", "area", "lanczos", "none"}
    assert bash(work, "chex-inspect list --where ") >= set(FINDINGS)
    assert bash(work, "chex-inspect sheet --where Mass,Ple") == {"Mass,Pleural_Thickening"}
    assert bash(work, "chex-convert -l lab") == {"labels.csv"}
    assert bash(work, "chex-convert -l ") == set(os.listdir(folder))
    assert bash(work, "chex-convert -o ") == {"images"}
    assert bash(work, "chex-inspect ") == set(os.listdir(folder)) | set(summaries())
    assert bash(work, "chex-inspect -q --color=never -j 2 sh") == {"sheet", "show"}
    assert bash(work, "chex-inspect -j 2 --color never diff ") == set(os.listdir(folder))
    assert bash(work, "chex-inspect help s") == {"scaling", "sheet", "show", "source"}
    assert bash(work, "chex-inspect labels.csv ") == set(os.listdir(folder))
    assert bash(work, "chex-synth -n ") == set()
    assert bash(work, "chex-inspect -- -") == set()
    assert bash(work, "chex-inspect diff --format ") == {"table", "csv", "json", "jsonl"}
    assert bash(work, "chex-inspect source -i images -l lab") == {"labels.csv"}
    assert bash(work, "chex-inspect report -o lab") == {"labels.csv"}
    assert bash(work, "chex-inspect scaling --network ") == {"edr", "hdr", "ndr", "10g"}
    assert bash(work, "chex-inspect scaling --reference ") >= {"dell", "rwth"}


@case("bash completes at a tab on a terminal")
def _(work):
    files(work)
    path = script("chex-convert", "bash", work, "script")
    terminal = Terminal([shell("bash"), "--norc", "--noprofile", "-i"], os.path.join(work, "files"),
                        {"PATH": os.environ["PATH"], "HOME": work, "TERM": "dumb", "PS1": "", "INPUTRC": "/dev/null"})
    try:
        terminal.send(f"source '{path}'; chex-convert() {{ printf 'got<%s>\\n' \"$@\"; }}; echo re''ady\n")
        terminal.until("ready\r")
        terminal.send("chex-convert --resi\tlan\t -l with\t\n")
        got = terminal.until(r"got<with blank.csv>")
        assert "got<--resize>" in got and "got<lanczos>" in got, got
    finally:
        terminal.close()


@case("fish offers every option of --help, words, lists, files and folders")
def _(work):
    folder = files(work)
    for line, text in commands().items():
        assert set(fish(work, line + " --")) == options(text), line
    assert set(fish(work, "chex-convert --resize ")) == {"bilinear", "area", "lanczos", "none"}
    assert set(fish(work, "chex-convert --resize=bil")) == {"--resize=bilinear"}
    assert set(fish(work, "chex-inspect list --where ")) >= set(FINDINGS)
    assert set(fish(work, "chex-inspect sheet --where Mass,Ple")) == {"Mass,Pleural_Thickening"}
    assert set(fish(work, "chex-convert -l lab")) == {"labels.csv"}
    assert set(fish(work, "chex-convert -o ")) == {"images/"}
    assert {f.rstrip("/") for f in fish(work, "chex-inspect list ")} == set(os.listdir(folder))
    assert {f.rstrip("/") for f in fish(work, "chex-inspect ")} == set(os.listdir(folder)) | set(summaries())
    assert fish(work, "chex-inspect -q sh") == {name: summaries()[name] for name in ("sheet", "show")}
    assert set(fish(work, "chex-inspect help s")) == {"scaling", "sheet", "show", "source"}
    assert set(fish(work, "chex-synth -n ")) == set()


@case("zsh completes at a tab on a terminal")
def _(work):
    files(work)
    assert zsh(work, "chex-convert --resize bil")[0] == "chex-convert --resize bilinear "
    assert zsh(work, "chex-convert --resize=lan")[0].rstrip() == "chex-convert --resize=lanczos"
    assert {"bilinear", "area", "lanczos", "none"} <= words(zsh(work, "chex-convert --resize ")[1])
    assert zsh(work, "chex-inspect list --where Mass,Ple")[0].startswith(
        "chex-inspect list --where Mass,Pleural_Thickening")
    assert zsh(work, "chex-convert -l lab")[0] == "chex-convert -l labels.csv "
    assert zsh(work, "chex-convert -o ")[0] == "chex-convert -o images/"
    assert zsh(work, "chex-inspect wit")[0] == "chex-inspect with\\ blank.csv "
    assert zsh(work, "chex-inspect -q ext")[0] == "chex-inspect -q extract "
    assert zsh(work, "chex-inspect help ext")[0] == "chex-inspect help extract "
    assert zsh(work, "chex-inspect diff wit")[0] == "chex-inspect diff with\\ blank.csv "
    listed = zsh(work, "chex-inspect s")[1]
    assert all(re.search(rf"{name} .*-- {summaries()[name]}", listed) for name in ("sheet", "show", "source")), listed
    for line, text in commands().items():
        missing = options(text) - words(zsh(work, line + " --")[1])
        assert not missing, f"{line}: {missing}"


@case("fish and zsh describe each option by its meaning, not by its default or values")
def _(work):
    files(work)
    for line, text in commands().items():
        tool, wanted = line.split()[0], meanings(text)
        assert wanted.keys() == options(text)
        for option, meaning in wanted.items():
            assert len(meaning.split()) > 1 and not meaning.startswith("default"), (line, option, meaning)
        fish_script = run([program(tool), "--completion", "fish"]).stdout
        if line != tool:
            fish_script = "\n".join(re.findall(rf"^.* from {line.split()[1]}' .*$", fish_script, re.M))
        for option, values in re.findall(r"-l (\S+) -x -a '([\w -]+)'", fish_script):
            first = re.split(r"\W", wanted.get("--" + option, ""))[0]
            assert first not in values.split(), f"{line} --{option} is described by its value {first}"
        shown = fish(work, line + " --")
        assert shown == wanted, [(o, shown.get(o), m) for o, m in wanted.items() if shown.get(o) != m]
        listed = zsh(work, line + " --")[1]
        for option, meaning in wanted.items():
            assert re.search(rf"{option}\b.* -- {re.escape(meaning)}", listed), f"{line} {option}: {meaning}: {listed}"


@case("make install puts the scripts where the shells look, --with-X-completion-dir elsewhere")
def _(work):
    if not os.path.exists(os.path.join(BUILD, "Makefile")):
        raise Skip("no Makefile")
    run(["make", "-s", "-C", BUILD, "install-bash_completionDATA", "install-zsh_completionDATA",
         "install-fish_completionDATA", f"DESTDIR={work}", "datadir=/share", "zsh_completiondir=/elsewhere"])
    for tool in TOOLS:
        for kind, place in (("bash", "share/bash-completion/completions/" + tool), ("zsh", "elsewhere/_" + tool),
                            ("fish", f"share/fish/vendor_completions.d/{tool}.fish")):
            assert slurp(os.path.join(work, place)).decode() == run([program(tool), "--completion", kind]).stdout


@case("a shell that there is not is refused")
def _(_work):
    run([program("chex-synth"), "--completion", "csh"], 2)


if __name__ == "__main__":
    sys.exit(case.main())
