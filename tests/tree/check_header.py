# SPDX-License-Identifier: Apache-2.0
"""libchex as a program of others meets it: chex.h alone, the shared library, and what both promise to keep."""
import json
import os
import re
import shlex
import shutil
import sys

import support

check = support.Cases()
CC = os.environ.get("CC") or "cc"
HEADER = os.path.join(support.SOURCE, "lib", "chex.h")
# Of a 64-bit system: (struct, bytes, [(member, offset)]), for structs that a program makes, or reads by a pointer.
# These numbers belong to the SONAME: a member may follow at the end, or take the place of `reserved`.
LAYOUT = [
    ("chex_error", 1064, {"status": 0, "cause": 4, "text": 8, "reserved": 1032}),
    ("chex_bytes", 16, {"data": 0, "size": 8}),
    ("chex_record", 152, {"pixels": 0, "height": 8, "finding_count": 20, "label": 24, "weight": 32, "sex": 33,
                          "age": 36, "view": 40, "name": 56, "patient": 72, "dataset_id": 88, "shard": 108,
                          "index": 112, "reserved": 120}),
    ("chex_batch", 64, {"capacity": 0, "pixels": 8, "labels": 16, "count": 24, "reserved": 32}),
    ("chex_dataset_info", 0, {"id": 0, "format_version": 20, "height": 24, "stride": 40, "pixel_offset": 48,
                              "shard_size": 56, "split_count": 60, "shard_count": 64, "image_count": 72,
                              "pixel_mean": 80, "pixel_deviation": 88, "pixel_size": 96, "finding_count": 104,
                              "unknown_labels": 108, "leaky_patients": 112}),
    ("chex_split_info", 0, {"name": 0, "members_sha256": 8, "first_shard": 16, "shard_count": 20, "image_count": 24,
                            "patient_count": 32, "positives": 40, "known": 48}),
    ("chex_shard_info", 0, {"name": 0, "sha256": 8, "split": 16, "record_count": 20, "image_count": 24, "size": 32}),
]


def header():
    with open(HEADER, encoding="utf-8") as file:
        return file.read()


def example_of_header():
    comment = re.search(r"^ \*     struct chex_error err;\n.*?^ \*\n(?= \* Errors)", header(), re.M | re.S).group(0)
    return re.sub(r"^ \* {0,5}", "", comment, flags=re.M)


def library():
    path = os.path.join(support.BUILD, ".libs", "libchex.so")
    if not os.path.exists(path):
        raise support.OtherBuild("no shared library")
    return os.path.realpath(path)


def listed():
    with open(os.path.join(support.SOURCE, "lib", "libchex.symbols"), encoding="utf-8") as file:
        return [line.strip() for line in file if not line.startswith("#")]


def compile_in(work, text, *flags, compiler=CC, suffix=".c"):
    """Compile a text that includes chex.h as it is installed; the path of the program or object."""
    os.makedirs(os.path.join(work, "include"), exist_ok=True)
    shutil.copy(HEADER, os.path.join(work, "include"))
    source, out = os.path.join(work, "program" + suffix), os.path.join(work, "program")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    words = shlex.split(compiler)
    if not shutil.which(words[0]):
        raise support.Skip(f"no {words[0]}")
    warnings = ["-Wall", "-Wextra", "-Wshadow", "-Wpedantic", "-Werror"]
    done = support.run([*words, *warnings, "-I" + os.path.join(work, "include"), source, "-o", out, *flags])
    assert done.returncode == 0, done.stderr
    return out


def run_with_library(work, text, *arguments):
    if "enable-sanitizers" in support.run([os.path.join(support.BUILD, "config.status"), "--config"]).stdout:
        raise support.OtherBuild("a library with sanitizers runs in no other program")
    done = support.run([compile_in(work, text, "-std=c11", library(), "-Wl,-rpath," + os.path.dirname(library())),
                        *arguments])
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@check("the shared library shows what lib/libchex.symbols lists, and nothing else (nm -D)")
def _(work):
    if not shutil.which("nm"):
        raise support.Skip("no nm (Debian: binutils)")
    lines = support.run(["nm", "-D", "--defined-only", library()]).stdout.splitlines()
    shown = sorted(line.split()[-1] for line in lines)
    assert shown == listed(), set(shown) ^ set(listed())


@check("chex.h declares with CHEX_API what lib/libchex.symbols lists")
def _(work):
    declared = re.findall(r"^CHEX_API [^;]*?\b(chex_\w+)\(", header(), re.M)
    assert sorted(declared) == listed(), set(declared) ^ set(listed())
    text = re.sub(r"/\*.*?\*/", "", header(), flags=re.S)
    bare = [line for line in text.splitlines() if re.match(r"[a-z].*\bchex_\w+\(", line)]
    assert not bare, bare


@check("libchex(3) has the functions, the statuses' numbers and the example of chex.h")
def _(work):
    with open(os.path.join(support.SOURCE, "man", "libchex.3"), encoding="utf-8") as file:
        page = file.read()
    synopsis = page[page.index(".Sh SYNOPSIS"):page.index(".Sh DESCRIPTION")]
    declared = [" ".join(f.split()) for f in re.findall(r"^CHEX_API ([^;]*);", header(), re.M)]
    shown = []
    for kind, name, arguments in re.findall(r"^\.Ft (.*)\n\.Fn (\w+) (.*)$", synopsis, re.M):
        words = ", ".join(shlex.split(arguments))
        shown.append(f"{kind}{'' if kind.endswith('*') else ' '}{name}({words})")
    assert sorted(shown) == sorted(declared), set(shown) ^ set(declared)
    numbers = dict(re.findall(r"^    (CHEX_\w+) = (\d+)", header(), re.M))
    for name, number in re.findall(r"(CHEX_ERR_\w+) No \((\d+)\)", page):
        assert numbers[name] == number, name
    example = re.search(r"begin example\n\.Bd.*?\n(.*)\n\.Ed\n", page, re.S).group(1)
    assert example.replace("\\e", "\\").replace("\\-", "-") == example_of_header().rstrip("\n")


@check("chex.h is C11 and C++ by itself, without a warning")
def _(work):
    text = "#include <chex.h>\n#include <chex.h>\nint main(void) { return CHEX_OK; }\n"
    compile_in(work, text, "-std=c11")
    compile_in(work, text, "-std=c++11", compiler=os.environ.get("CXX") or "c++", suffix=".cc")


@check("the structs of chex.h have the sizes and offsets of this SONAME")
def _(work):
    text = ["#include <chex.h>", "#include <assert.h>"]
    for name, size, offsets in LAYOUT:
        if size:
            text.append(f'static_assert(sizeof(struct {name}) == {size}, "size of {name}");')
        text += [f'static_assert(offsetof(struct {name}, {member}) == {offset}, "{name}.{member}");'
                 for member, offset in offsets.items()]
    compile_in(work, "\n".join(["#include <stdint.h>", "#if UINTPTR_MAX == UINT64_MAX", *text, "#endif",
                                "int main(void) { return 0; }", ""]), "-std=c11")
    assert sorted(name for name, _, _ in LAYOUT) == sorted(re.findall(r"^struct (\w+) \{$", header(), re.M))


@check("the versions of header and library are the one of the programs")
def _(work):
    text = '#include <chex.h>\n#include <stdio.h>\nint main(void) { printf("%s %s %u %u %d.%d.%d\\n", ' \
           "chex_version(), CHEX_VERSION_STRING, chex_version_number(), CHEX_VERSION_NUMBER + 0u, " \
           "CHEX_VERSION_MAJOR, CHEX_VERSION_MINOR, CHEX_VERSION_PATCH); return 0; }\n"
    words = run_with_library(work, text).split()
    version = support.run([support.program("chex-convert"), "--version"]).stdout.split()[1]
    assert words[0] == words[1] == words[4] == version, (words, version)
    assert words[2] == words[3], words


@check("the example of chex.h reads every image of a split")
def _(work):
    example = example_of_header()
    assert 'chex_dataset_open("shards", ' in example and '"train"' in example
    dataset = os.environ["CHEX_DATASET"]
    with open(os.path.join(dataset, "manifest.json"), encoding="utf-8") as file:
        train = next(split for split in json.load(file)["splits"] if split["name"] == "train")
    text = "#include <chex.h>\n#include <stdio.h>\n#include <stdlib.h>\n" \
           "static unsigned long images, positives, sum;\n" \
           "static void use(const uint8_t *pixels, const uint8_t *labels, size_t count)\n{\n" \
           "    for (size_t i = 0; i < count * 14; i++)\n        positives += labels[i];\n" \
           "    for (size_t i = 0; i < count * 32 * 32; i++)\n        sum += pixels[i];\n" \
           "    images += count;\n}\n" \
           "int main(void)\n{\n" + example + \
           '    printf("%lu %lu %d\\n", images, positives, sum > 0);\n    return status != CHEX_OK;\n}\n'
    words = run_with_library(work, text.replace('"shards"', json.dumps(dataset))).split()
    assert int(words[0]) == train["images"], (words, train)
    positives = train["positives"]
    assert int(words[1]) == sum(positives.values() if isinstance(positives, dict) else positives), (words, train)
    assert words[2] == "1"
    assert 12 <= len([line for line in example.splitlines() if line.strip()]) <= 20


@check("doc/example.c counts every image of every split")
def _(work):
    dataset = os.environ["CHEX_DATASET"]
    with open(os.path.join(support.SOURCE, "doc", "example.c"), encoding="utf-8") as file:
        out = run_with_library(work, file.read(), dataset)
    with open(os.path.join(dataset, "manifest.json"), encoding="utf-8") as file:
        splits = json.load(file)["splits"]
    found = dict(re.findall(r"^(\w+): (\d+) images$", out, re.M))
    assert found == {split["name"]: str(split["images"]) for split in splits}, out


sys.exit(check.main())
