#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold the documents to the code: what they say is parsed out of them and compared (Python 3, stdlib only).

    check_docs.py

$srcdir is the source folder (default: the folder above this file), $BUILDDIR that of the programs (default: the
current one).  A check whose program is missing is skipped by name.  Exit code 1 where something differs.
"""
import glob
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

from man_pages import blocks, unescape
from support import Tally, helps, masked

SOURCE = os.environ.get("srcdir") or os.path.join(os.path.dirname(__file__), "..", "..")
BUILD = os.environ.get("BUILDDIR") or "."
TOOLS = ["chex-convert", "chex-inspect", "chex-predict", "chex-synth", "chex-train"]
RECIPES = ["dataset", "numpy", "tensorflow", "tfrecorddataset", "fixedlength", "torch", "dali"]
KEYS = ["_p0", "image/raw", "image/height", "image/width", "image/channels", "image/label", "image/weight",
        "patient/age", "patient/sex", "record/slot", "image/view", "patient/id", "image/filename", "_p1"]


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as f:
        return f.read()


def program(name):
    """The path of a built program, or None."""
    path = os.path.abspath(os.path.join(BUILD, name))
    return path if os.access(path, os.X_OK) else None


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)


# ---- mdoc ------------------------------------------------------------------------------------------------------------

def page_options(page):
    """{(letter or "", long name)} of the .It lines of a page."""
    options = set()
    for line in page.splitlines():
        if not re.match(r"\.It Fl ", line):
            continue
        names = re.findall(r"Fl (-?)([\w-]+)", line)
        letter = next((n for dash, n in names if not dash), "")
        long_name = next((n for dash, n in names if dash), "")
        options.add((letter, long_name))
    return options


def help_options(text):
    return {(m.group(1) or "", m.group(2))
            for m in re.finditer(r"^  (?:-(\w),|   ) --([\w-]+)", text, re.M)}


def section_of(page, command):
    """The part of a page about a command; "": all but the section COMMANDS."""
    before, _, rest = page.partition("\n.Sh COMMANDS\n")
    commands, heading, after = rest.partition("\n.Sh ")
    if not command:
        return before + heading + after
    return commands.partition(f".Ss {command}\n")[2].partition("\n.Ss ")[0]


def offered(script, command):
    """The long options that a completion script for bash offers after the command; "": without one."""
    offer = re.search(rf"^        {command or '[*]'}\)\n +offer='(.*)'$", script, re.M)[1]
    return set(re.findall(r"--([\w-]+)", offer))


def check_options(tally):
    for tool in TOOLS:
        name = f"{tool} --help, its completion and man/{tool}.1 have the same options"
        path = program(tool)
        if not path:
            tally.skip(name, f"{tool} is not built")
            continue
        page, script, texts = read(f"man/{tool}.1"), run([path, "--completion", "bash"]).stdout, helps(tool)
        common, faults, count = help_options(texts[""].partition("\nCommon\n")[2]), [], 0
        for command, text in texts.items():
            wanted = help_options(text) - (common if command else set())
            got, completed = page_options(section_of(page, command)), offered(script, command)
            faults += [f"only in --help of {command}: {o}" for o in sorted(wanted - got)]
            faults += [f"only in the page of {command}: {o}" for o in sorted(got - wanted)]
            faults += [f"not completed and in --help of {command}: {o}"
                       for o in sorted({o for _, o in wanted | common} ^ completed)]
            count += len(wanted)
        titles = re.findall(r"^\.Ss (.*)$", page.partition("\n.Sh COMMANDS\n")[2].partition("\n.Sh ")[0], re.M)
        faults += [f"a command of one of both only: {c}" for c in sorted(set(titles) ^ (set(texts) - {""}))]
        tally.check(f"{name} ({count})", faults or ([] if count else ["no options"]))


def check_help_text(tally):
    """--help fits a terminal of 80 columns and names every exit code of cli.h, or those of its page."""
    codes = set(re.findall(r"^    EXIT_\w+ = (\d+),", read("tools/common/cli.h"), re.M)) | {"128+n"}
    of_all, of_jobs = {"0", "2", "3", "4", "70"}, {"8", "75", "128+n"}
    for tool in TOOLS:
        name = f"{tool} --help fits 80 columns and names every exit code or those of the page"
        if not program(tool):
            tally.skip(name, f"{tool} is not built")
            continue
        text = run([program(tool), "--help"]).stdout
        section = read(f"man/{tool}.1").partition(".Sh EXIT STATUS\n")[2].partition("\n.El\n")[0]
        shown = set(re.findall(r"^  (\d+(?:\+n)?) ", text.partition("\nExit status\n")[2], re.M))
        page = set(re.findall(r"^\.It (\S+)$", section, re.M))
        needed = of_all | of_jobs if tool in ("chex-convert", "chex-train") else of_all
        faults = [f"{len(line)} columns: {line}" for part in helps(tool).values() for line in part.splitlines()
                  if len(line) > 80]
        wrong = shown - codes if shown == page else shown ^ codes
        faults += [f"cli.h or --help lacks exit code {code}" for code in sorted(wrong)]
        faults += [f"the page lacks exit code {code}" for code in sorted(needed - page)]
        faults += [f"--help lacks exit code {code} of the page" for code in sorted(page - shown)]
        tally.check(name, faults)


def literal_lines(page):
    """The lines of a page that no formatter may break: code, commands, dumps."""
    displays = re.findall(r"^\.Bd -literal.*\n((?:.*\n)*?)\.Ed$", page, re.M)
    shown = [line for display in displays for line in display.splitlines()]
    shown += [line.replace('"', "") for line in re.findall(r"^\.Dl (.*)", page, re.M)]
    return {unescape(line).strip().replace('"', "") for line in shown}


def broken_commands(page):
    """Commands of one line that a formatter breaks at 80 columns; both indent them by 11."""
    lines = [unescape(line).replace('"', "") for line in re.findall(r"^\.Dl (.*)", page, re.M)]
    return [f"use .Bd -literal and a backslash: {line}" for line in lines if len(line) > 80 - 11]


def layout_faults(text, columns, literal):
    """Lines that are too wide, and columns of a table in which nothing but single words has space."""
    faults, run_of = [], []
    for line in text.translate({0x2010: "-", 0x2212: "-", 0x2018: "'", 0x2019: "'"}).splitlines():
        if len(line) > columns and (columns == 80 or line.strip().replace('"', "") not in literal):
            faults.append(f"{len(line)} columns of {columns}: {line}")
        words, indent = line.split(), len(line) - len(line.lstrip())
        narrow = len(words) == 1 and indent > columns // 3 and line.strip() not in literal
        run_of = run_of + [line] if narrow and (not run_of or run_of[-1].startswith(" " * indent)) else []
        if len(run_of) == 3:
            faults.append(f"one word a line at {columns} columns: {' / '.join(word.strip() for word in run_of)}")
    return faults


def check_layout(tally):
    """groff and mandoc format each page at 80 and 60 columns without a warning; at 60 only literal lines are wider."""
    formatters = {"groff": lambda n: ["-ww", "-man", "-Tutf8", f"-rLL={n}n", f"-rLT={n}n"],
                  "mandoc": lambda n: ["-Tutf8", f"-Owidth={n}", "-Wwarning"]}
    for path in sorted(glob.glob(os.path.join(SOURCE, "man", "*.[1-9]"))):
        page = os.path.join("man", os.path.basename(path))
        for formatter, arguments in formatters.items():
            name = f"{formatter} formats {page} without a warning, for 80 and 60 columns"
            if not shutil.which(formatter):
                tally.skip(name, f"no {formatter}")
                continue
            faults = broken_commands(read(page))
            for columns in (80, 60):
                done = subprocess.run([formatter, *arguments(columns), path], capture_output=True, encoding="utf-8",
                                      check=False)
                text = re.sub(r".\x08|\x1b\[[\d;]*m", "", done.stdout)
                faults += done.stderr.splitlines() + layout_faults(text, columns, literal_lines(read(page)))
                faults += [] if len(text) > 1000 else ["there is no text"]
            tally.check(name, faults)


# ---- a record --------------------------------------------------------------------------------------------------------

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """[(number, content)] of a message that has length-delimited fields only; IndexError, ValueError if it is not."""
    at, out = 0, []
    while at < len(data):
        tag, at = varint(data, at)
        size, at = varint(data, at)
        if tag & 7 != 2 or size > len(data) - at:
            raise ValueError(f"field {tag >> 3} of wire type {tag & 7} and {size} bytes")
        out.append((tag >> 3, data[at:at + size]))
        at += size
    return out


def only_field(data, number):
    """The content of a message's single field."""
    (found, content), = fields(data)
    if found != number:
        raise ValueError(f"field {found}, not {number}")
    return content


def parse_feature(data):
    (kind, content), = fields(data)
    value = only_field(content, 1)
    if kind == 1:
        return value
    if kind == 2:
        return list(struct.unpack(f"<{len(value) // 4}f", value))
    if kind != 3:
        raise ValueError(f"list of kind {kind}")
    numbers, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        numbers.append(number)
    return numbers


def parse_record(record):
    """([(key, value)], faults) of one framed record."""
    faults = []
    length, length_crc = struct.unpack_from("<QI", record)
    if length != len(record) - 16:
        return [], [f"length {length}, but there are {len(record)} - 16 bytes"]
    data = record[12:-4]
    if masked(record[:8]) != length_crc:
        faults.append("checksum of the length")
    if masked(data) != struct.unpack("<I", record[-4:])[0]:
        faults.append("checksum of the data")
    pairs = []
    for number, entry in fields(only_field(data, 1)):
        (one, key), (two, feature) = fields(entry)
        if (number, one, two) != (1, 1, 2):
            raise ValueError(f"map entry with fields {number}, {one}, {two}")
        pairs.append((key.decode(), parse_feature(feature)))
    return pairs, faults


def dump_bytes(text):
    """The bytes of a hexdump, and faults of its lines."""
    data, faults = bytearray(), []
    for line in text.splitlines():
        match = re.match(r"([0-9a-f]{6}) ((?:[0-9a-f]{2} ){1,8}) *>(.*)<$", line)
        if not match:
            faults.append(f"no line of od: {line}")
            continue
        row = bytes.fromhex(match.group(2))
        if int(match.group(1), 16) != len(data) or match.group(3) != shown(row):
            faults.append(f"offset or text do not fit the bytes: {line}")
        data += row
    return bytes(data), faults


def shown(row):
    return "".join(chr(b) if 0x20 <= b <= 0x7E else "." for b in row)


def record_faults(record):
    pairs, faults = parse_record(record)
    keys = [key for key, _ in pairs]
    values = dict(pairs)
    if keys != KEYS:
        return faults + [f"keys {keys}"]
    height, width = values["image/height"][0], values["image/width"][0]
    if len(values["image/raw"]) != height * width or values["image/channels"] != [1]:
        faults.append("pixels and sides do not agree")
    if record.find(values["image/raw"]) % 64 != 0:
        faults.append("pixels are not at a multiple of 64")
    if len(record) % 64 != 0 or any(values["_p0"] + values["_p1"]):
        faults.append("stride or padding")
    if len(values["image/label"]) != 14 or not set(values["image/label"]) <= {0, 1}:
        faults.append(f"labels {values['image/label']}")
    if not re.fullmatch(rb"[0-9a-f]{16}/\d{5}/\d{5}", values["record/slot"]):
        faults.append(f"slot {values['record/slot']}")
    return faults


def check_hexdump(tally):
    name = "the hexdump in chex-shard(5) is a record"
    assert masked(b"123456789") == 0xC78AB0E5
    dump = blocks(read("man/chex-shard.5"), "hexdump").get("record", "")
    record, faults = dump_bytes(dump)
    try:
        faults += record_faults(record) if record else ["there is none"]
    except (ValueError, IndexError, struct.error) as error:
        faults.append(f"not an Example: {error}")
    tally.check(f"{name} ({len(record)} bytes)", faults)
    check_hexdump_commands(tally, record)


def check_hexdump_commands(tally, record):
    """
    The commands above the dump give its bytes.  The pixels and the checksum over them may differ: chex-synth may draw
    in another way without a change of the format.
    """
    name = "the commands above the hexdump give its bytes, pixels apart"
    if not program("chex-synth") or not program("chex-convert"):
        tally.skip(name, "chex-synth or chex-convert is not built")
        return
    commands = blocks(read("man/chex-shard.5"), "commands")["record"]
    environment = dict(os.environ, PATH=os.path.abspath(BUILD) + os.pathsep + os.environ.get("PATH", ""))
    with tempfile.TemporaryDirectory() as folder:
        result = run(["sh", "-e"], input=commands, cwd=folder, env=environment)
        if result.returncode != 0:
            tally.check(name, result.stdout.splitlines())
            return
    lines = [line for line in result.stdout.splitlines() if re.match("[0-9a-f]{6} ", line)]
    got, _ = dump_bytes("\n".join(lines))
    pixels = range(0x40, 0x80)
    faults = [f"the page has {a:02x} at byte {at:x}, the file {b:02x}" for at, (a, b) in enumerate(zip(record, got))
              if a != b and at not in pixels and at < len(record) - 4]
    if faults or len(got) != len(record):
        faults = faults[:3] + ["put this into the page:"] + [line.replace("\\", "\\e") for line in lines]
    tally.check(name, faults)


# ---- the same as the tools -------------------------------------------------------------------------------------------

def check_with_tools(tally):
    """Convert a small synthetic set; its records have the form of the page, its splits are those of the code."""
    names = ["records of chex-convert have the form of chex-shard(5)",
             "the Python code in chex-convert(1) gives the splits of chex-convert"]
    if not program("chex-synth") or not program("chex-convert"):
        for name in names:
            tally.skip(name, "chex-synth or chex-convert is not built")
        return
    with tempfile.TemporaryDirectory() as folder:
        synth, out = os.path.join(folder, "synth"), os.path.join(folder, "out")
        for command in ([program("chex-synth"), "-n", "24", "--size", "64", "-q", "-o", synth],
                        [program("chex-convert"), "-q", "-i", synth, "-l", f"{synth}/Data_Entry_2017_v2020.csv",
                         "--split", "patient:50,20,30:7", "--size", "16", "--shard-size", "4", "-o", out]):
            result = run(command)
            if result.returncode != 0:
                tally.check(names[0], [" ".join(command), *result.stdout.splitlines()])
                return
        compare_with_tools(tally, names, out)


def compare_with_tools(tally, names, out):
    scope = {}
    exec(blocks(read("man/chex-convert.1"), "code")["split"], scope)  # the page's own code
    faults, split_faults, patients = [], [], set()
    for path in sorted(glob.glob(os.path.join(out, "*.tfrecord-*"))):
        with open(path, "rb") as f:
            shard = f.read()
        split = re.search(r"chestxray14-(\w+)\.tfrecord", path).group(1)
        stride = struct.unpack_from("<Q", shard)[0] + 16
        if len(shard) % stride:
            faults.append(f"{path}: {len(shard)} bytes, stride {stride}")
            continue
        for at in range(0, len(shard), stride):
            record = shard[at:at + stride]
            faults += [f"{path} at {at}: {fault}" for fault in record_faults(record)]
            patient = dict(parse_record(record)[0])["patient/id"].decode()
            patients.add(patient)
            if scope["split"](patient, 50, 20, 7) != split:
                split_faults.append(f"patient {patient} is in {split}, not so by the code")
    tally.check(names[0], faults if patients else ["no records"])
    tally.check(f"{names[1]} ({len(patients)} patients)", split_faults)


# ---- documents among each other --------------------------------------------------------------------------------------

def readme_recipes():
    text = read("README.md") + read("doc/reading.md")
    return dict(re.findall(r"^<!-- recipe: (\w+) -->\n```python\n(.*?)^```$", text, re.M | re.S))


def check_recipes(tally):
    """Whitespace at the ends of lines and of the text apart."""
    def lines(text):
        return [line.rstrip() for line in text.strip().splitlines()]

    readme, page = readme_recipes(), blocks(read("man/chex-shard.5"), "recipe")
    faults = [f"README.md and doc/reading.md have {sorted(readme)}"] if sorted(readme) != sorted(RECIPES) else []
    for name in sorted(set(readme) | set(page)):
        if lines(readme.get(name, "")) != lines(page.get(name, "")):
            faults.append(f"recipe {name} differs")
    for name, text in readme.items():
        try:
            compile(text, name, "exec")
        except SyntaxError as error:
            faults.append(f"recipe {name}: {error}")
    tally.check(f"README.md, doc/reading.md and chex-shard(5) have the same recipes ({len(readme)})", faults)
    weights = dict(re.findall(r"<!-- recipe: (\w+) -->\s*```python\n(.*?)```", read("doc/weights.md"), re.S))
    page = {name: lines(text) for name, text in blocks(read("man/chex-train.1"), "recipe").items()}
    wanted = {name: lines(weights[name]) for name in ("checkpoint", "imagenet")}
    tally.check("chex-train(1) has the recipes of doc/weights.md for weights from PyTorch",
                [f"recipe {name} differs" for name in {*page, *wanted} if page.get(name) != wanted.get(name)])


def check_versions(tally):
    found = {
        "configure.ac": re.search(r"^AC_INIT\(\[chex-tools\], \[([^\]]+)\]", read("configure.ac"), re.M),
        "lib/chex.h": re.search(r'^#define CHEX_VERSION_STRING "(\S+)"$', read("lib/chex.h"), re.M),
        "CITATION.cff": re.search(r"^version: (\S+)$", read("CITATION.cff"), re.M),
        "python/chex_tools/_version.py": re.search(r'^__version__ = "(\S+)"$', read("python/chex_tools/_version.py"),
                                                   re.M),
        "CHANGELOG.md": re.search(r"^## (\S+)", read("CHANGELOG.md"), re.M),
    }
    versions = {name: match.group(1) if match else None for name, match in found.items()}
    tally.check("configure.ac, chex.h, CITATION.cff, chex_tools and CHANGELOG.md have one version",
                [] if len(set(versions.values())) == 1 and None not in versions.values() else [str(versions)])


def check_licence(tally):
    """REUSE 3: the licence in LICENSES, REUSE.toml for what has no comments, a line in every file that may have one."""
    faults = []
    if read("LICENSE") != read("LICENSES/Apache-2.0.txt"):
        faults.append("LICENSE and LICENSES/Apache-2.0.txt differ")
    if 'path = "**"' not in read("REUSE.toml"):
        faults.append("REUSE.toml does not speak of all files")
    commented = [os.path.relpath(path, SOURCE)
                 for ending in ("c", "h", "py", "sh", "am", "ac", "m4", "mk", "proto", "1", "5")
                 for path in glob.glob(os.path.join(SOURCE, "**", f"*.{ending}"), recursive=True)]
    # not what was generated: the files of Autoconf and libtool, build folders
    commented = [name for name in commented
                 if re.match(r"(bench|doc|lib|m4/chex|man|packaging|python|schemas|tests|tools|train)[/_]"
                             r"|[a-zC-Z]+[.-][a-z]+$", name)
                 and not name.endswith((".pb-c.c", ".pb-c.h")) and name != "aclocal.m4"]
    faults += [f"{name}: no SPDX line" for name in sorted(commented)
               if "SPDX-License-Identifier: Apache-2.0" not in read(name)]
    tally.check(f"every file says its licence ({len(commented)})", faults)


def check_home_page(tally):
    """One address or none, everywhere: it is the fifth argument of AC_INIT."""
    init = re.search(r"^AC_INIT\((.*?)\)$", read("configure.ac"), re.M | re.S).group(1).split(",")
    found = {"configure.ac": init[4].strip(" []\n") if len(init) > 4 else ""}
    match = re.search(r'^url: "?([^"\s]+)', read("CITATION.cff"), re.M)
    found["CITATION.cff"] = match.group(1) if match else ""
    for tool in filter(program, TOOLS):
        match = re.search(r"^Home page: (.*)$", run([program(tool), "--help"]).stdout, re.M)
        found[f"{tool} --help"] = match.group(1) if match else ""
        lines = run([program(tool), "--version"]).stdout.splitlines()
        found[f"{tool} --version"] = lines[1] if len(lines) > 1 and "://" in lines[1] else ""
    tally.check("configure.ac, CITATION.cff, --help and --version have one home page: "
                f"{found['configure.ac'] or 'none'}",
                [str(found)] if len(set(found.values())) > 1 else [])


# ---- the environment -------------------------------------------------------------------------------------------------

# Which programs a file is in that reads the environment.
READERS = {"tools/common/color.c": TOOLS, "tools/common/progress_line.c": TOOLS,
           "tools/common/launcher.c": ["chex-convert", "chex-train"],
           "tools/common/mpi_opened.c": ["chex-convert", "chex-train"],
           "lib/io/lock.c": ["chex-convert", "chex-train"],
           "tools/inspect/show/terminal.c": ["chex-inspect"], "train/cpu/kernels_best.c": ["chex-train"],
           "train/cuda/run/devices.c": ["chex-train"]}


def variables(path):
    """The names of the variables that a file reads, none where it reads none; TZ is localtime's."""
    text = read(path)
    names = set(re.findall(r'"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)"', text)) if "getenv(" in text else set()
    names -= {"UTF8", "H200"}  # values
    return names | ({"TZ"} if "localtime" in text else set())


def check_environment(tally):
    wanted, faults = {tool: set() for tool in TOOLS}, []
    paths = (p for part in ("lib", "tools", "train")
             for p in glob.glob(os.path.join(SOURCE, part, "**", "*.c"), recursive=True))
    for name in sorted(os.path.relpath(path, SOURCE) for path in paths):
        found = variables(name)
        if found and name not in READERS:
            faults.append(f"{name} reads {sorted(found)}, and is not among READERS of this test")
        for tool in READERS.get(name, []):
            wanted[tool] |= found
    for page in sorted(glob.glob(os.path.join(SOURCE, "man", "*.[1-9]"))):
        name = os.path.basename(page)
        section = re.search(r"^\.Sh ENVIRONMENT\n(.*?)^\.Sh ", read(f"man/{name}"), re.M | re.S)
        if not section:
            faults.append(f"man/{name} has no section ENVIRONMENT")
            continue
        got = set(re.findall(r"[A-Z][A-Z0-9_]+", " ".join(re.findall(r"^\.(?:It )?Ev (.*)$", section.group(1), re.M))))
        if got != wanted.get(name[:-2], set()):
            faults.append(f"man/{name} has {sorted(got)}, the code reads {sorted(wanted.get(name[:-2], set()))}")
    tally.check("every page has the variables of the environment that the code reads", faults)


def check_links(tally):
    faults, count = [], 0
    for path in sorted(glob.glob(os.path.join(SOURCE, "*.md"))):
        text = re.sub(r"^```.*?^```$", "", read(os.path.basename(path)), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:|#", target):
                continue
            count += 1
            if not os.path.exists(os.path.join(SOURCE, target.split("#")[0])):
                faults.append(f"{os.path.basename(path)}: {target}")
    tally.check(f"links in *.md lead somewhere ({count})", faults)


# ---- who includes whom -----------------------------------------------------------------------------------------------

def table(text, mark):
    """The rows behind a heading line and its rule, between <!-- MARK --> and <!-- /MARK -->."""
    part = re.search(rf"<!-- {mark} -->\n(.*?)<!-- /{mark} -->", text, re.S).group(1)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in part.strip().splitlines()[2:]]


def words(cell):
    return [word for word in re.split(r",\s*", cell.replace("`", "")) if word]


def check_padding_word(tally):
    """CHANGELOG.md names the word that was used before."""
    faults = []
    for files in ("*.md", "doc/**/*.md", "man/*.[1-9]", "schemas/*.json", "tools/**/*.[ch]"):
        for path in sorted(glob.glob(os.path.join(SOURCE, files), recursive=True)):
            name = os.path.relpath(path, SOURCE)
            if name != "CHANGELOG.md" and re.search(r"\bfill(ing|er)\b", read(name), re.I):
                faults.append(name)
    tally.check("documents, schemas and tools call a record of weight 0 a padding record, never filling", faults)


def check_vendors(tally):
    faults = []
    rows = [(words(headers), words(files)) for _, headers, files in table(read("CONTRIBUTING.md"), "vendor-table")]
    paths = [path for part in ("lib", "train", "tools", "tests")
             for path in glob.glob(os.path.join(SOURCE, part, "**", "*.[ch]"), recursive=True)]
    for name in sorted(os.path.relpath(path, SOURCE) for path in paths):
        for header in re.findall(r'^#include [<"]([^>"]+)[>"]', read(name), re.M):
            for headers, files in rows:
                if header in headers and not any(
                        name.startswith((place + "/", place + ".", place + "_")) for place in files):
                    faults.append(f"{name} includes {header}")
    tally.check("vendor headers stand where the table in CONTRIBUTING.md says", faults)


def check_help(tally):
    """`make help` names every target that is for people."""
    fragments = glob.glob(os.path.join(SOURCE, "tests", "**", "local.mk"), recursive=True)
    names = ["Makefile.am", "bench/local.mk", "packaging/local.mk"]
    names += [os.path.relpath(path, SOURCE) for path in fragments]
    fragments = [read(name) for name in names]
    named = {line.split()[0] for text in fragments for line in re.findall(r"^#: (.*)$", text, re.M)}
    phony = {word for text in fragments for line in re.findall(r"^\.PHONY: ((?:.*\\\n)*.*)$", text, re.M)
             for word in line.replace("\\\n", " ").split()}
    phony = {"dist" if word == "dist-xz" else word for word in phony if not word.startswith("tally-")}
    tally.check(f"make help names every target ({len(phony)})", [f"not {word}" for word in sorted(phony - named)])


# ---- faults ----------------------------------------------------------------------------------------------------------

FAULT_FILES = {"A": "check_archive.py", "C": "check_convert.py", "F": "check_faults.py", "I": "check_inspect.py",
               "K": "check_ranks.py", "N": "commands/*.txt", "R": "check_train_ranks.py", "S": "check_resume.py",
               "T": "check_train.py", "U": "check_train_cuda.py",
               "W": "check_withdraw.py", "X": "check_reshard.py"}
CASE = re.compile(r'^@case\(f?"(.*?)"(?:, slow=(True))?\)$', re.M | re.S)  # several strings in a row are one name


def sources(pattern):
    paths = glob.glob(os.path.join(SOURCE, "tests", "**", pattern), recursive=True)
    return "".join(read(os.path.relpath(path, SOURCE)) for path in sorted(paths))


def is_slow(text, beginning):
    """Does only check-slow run the cases with this beginning?  None: there are none of that form."""
    tiers = {slow for name, slow in CASE.findall(text) if re.sub(r'"\s+"', "", name).startswith(beginning)}
    return tiers == {"True"} if tiers else None


def check_faults_table(tally):
    """Each test that tests/faults/README.md names is there, and "(slow)" is behind those of check-slow alone."""
    units = set(re.findall(r"^(?:LOOP_|SIGNAL_)?TEST\((\w+)[,)]", sources("*.c"), re.M))
    files = {letter: sources(pattern) for letter, pattern in FAULT_FILES.items()}
    rows = [line for line in read("tests/faults/README.md").splitlines() if re.match(r"\| (\d|-)", line)]
    faults = [f"only {len(rows)} rows"] * (len(rows) < 80)
    for row in rows:
        file, named, cell = None, 0, row.split(" | ", 2)[2]
        for letter, quoted, slow, unit in re.findall(r'\b([A-Z])(?= ")|"([^"]*)"( \(slow\))?|`(\w+)`', cell):
            file = letter or file
            named += not letter
            if unit and unit not in units:
                faults.append(f"no unit test {unit}: {row}")
            beginning = quoted.removesuffix("...").strip(" .")
            if quoted and (file is None or beginning not in files[file]):
                faults.append(f'no case "{quoted}" in {FAULT_FILES.get(file)}: {row}')
            elif quoted and is_slow(files[file], beginning) not in (None, bool(slow)):
                faults.append(f'"{quoted}" in {FAULT_FILES[file]}: slow in one of the two alone: {row}')
        if not named:
            faults.append(f"no test: {row}")
    tally.check("each fault of tests/faults/README.md has a test that is there", faults)


def main():
    tally = Tally()
    check_options(tally)
    check_help_text(tally)
    check_layout(tally)
    check_hexdump(tally)
    check_with_tools(tally)
    check_recipes(tally)
    check_versions(tally)
    check_licence(tally)
    check_home_page(tally)
    check_environment(tally)
    check_links(tally)
    check_padding_word(tally)
    check_vendors(tally)
    check_help(tally)
    check_faults_table(tally)
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
