#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What quickstart.sh and run-tests.sh do when packages come and go: tests/setup.sh, run-tests.sh, tests/tally.sh.

Packages are hidden, not removed: PATH has links to all programs but some, and pkg-config does not know some modules.
"""
import os
import re
import shutil
import subprocess
import sys

from support import SOURCE, Cases, Skip, run, says, slurp, write

case = Cases()
MPI_PROGRAMS = ("mpicc", "mpirun")


def programs(folder, hidden, modules=()):
    """A folder of links to the system's programs but the hidden ones; its pkg-config does not know these modules."""
    os.mkdir(folder)
    for place in ("/usr/local/bin", "/usr/bin", "/bin"):
        for name in os.listdir(place) if os.path.isdir(place) else ():
            if name not in hidden and not os.path.lexists(f"{folder}/{name}"):
                os.symlink(os.path.join(place, name), f"{folder}/{name}")
    if modules:
        real = shutil.which("pkg-config")
        os.unlink(f"{folder}/pkg-config")
        names = "|".join(f"*\\ {m}*" for m in modules)
        write(f"{folder}/pkg-config", f'#!/bin/sh\ncase " $*" in {names}) exit 1 ;; esac\nexec {real} "$@"\n')
        os.chmod(f"{folder}/pkg-config", 0o755)
    return folder


def shell(path, script, code=0, **more):
    """A script that has tests/setup.sh, with this PATH."""
    kept = {k: v for k, v in os.environ.items() if k in ("HOME", "TMPDIR", "LC_ALL", "PKG_CONFIG_PATH")}
    return run(["/bin/sh", "-euc", f'source={SOURCE}; . "$source/tests/setup.sh"; {script}'], code,
               env=dict(kept, PATH=path, **more))


def missing(path, folder):
    return run(["make", "-s", "--no-print-directory", "-C", folder, "missing-suites"], env={"PATH": path}).stdout


@case("a build folder that was configured before Check and MPI came is configured again, and only then; an nvcc "
      "that compiles nothing is not used")
def _(work):
    if not shutil.which("mpicc") or subprocess.run(["pkg-config", "check"], check=False).returncode != 0:
        raise Skip("no Check or no MPI here")
    bare = programs(f"{work}/bare", MPI_PROGRAMS, ("check", "ompi-c", "mpich"))
    full = programs(f"{work}/full", ())
    folder = f"{work}/build"
    again = f"configured {folder}"
    os.makedirs(f"{work}/cuda/bin")
    write(f"{work}/cuda/bin/nvcc", "")
    os.chmod(f"{work}/cuda/bin/nvcc", 0o755)
    summary = shell(bare, again, CHEX_CONFIGURE=f"--enable-werror --disable-hardening CUDA_HOME={work}/cuda").stdout
    assert re.search(r"trains on +CPU\n.*CUDA +no: .*/cuda/bin/nvcc", summary), summary
    assert re.search("unit tests: Check(.|\n)*ranks: there is no mpirun", missing(bare, folder)), missing(bare, folder)
    made = os.stat(f"{folder}/config.status").st_mtime_ns
    assert "again" not in shell(bare, again).stdout
    assert os.stat(f"{folder}/config.status").st_mtime_ns == made, "configured again for nothing"

    write(f"{folder}/lib/marker.o", "")  # what is built stays when something comes, and goes when something goes
    said = shell(full, again).stdout
    assert "configure again" in said and re.search(r"^come module check ", said, re.M), said
    assert missing(full, folder) == "", missing(full, folder)
    options = run([f"{folder}/config.status", "--config"], cwd=folder).stdout
    assert "--enable-werror" in options and "--disable-hardening" in options, options
    assert os.path.exists(f"{folder}/lib/marker.o")
    assert "again" not in shell(full, again).stdout


@case("installing packages makes no file in TMPDIR, where another user could plant a link, and shows why it failed")
def _(work):
    path, temporary, log = programs(f"{work}/path", ("apt-get", "dpkg-query", "sudo")), f"{work}/tmp", f"{work}/log"
    os.mkdir(temporary)
    fails = f'ls {temporary} >> {log}; [ "$4" != install ] || {{ echo no such package; exit 100; }}'
    for name, does in (("dpkg-query", "exit 1"), ("sudo", 'exec "$@"'), ("apt-get", fails)):
        os.chmod(write(f"{path}/{name}", f"#!/bin/sh\n{does}\n"), 0o755)
    done = shell(path, "need chex-nothing", 1, TMPDIR=temporary)
    says(done, "no such package", "apt-get could not install chex-nothing")
    assert slurp(log) == b"" and not os.listdir(temporary), slurp(log)


@case("installing packages waits for another apt-get and shows its progress; without root it names the packages")
def _(work):
    path, log = programs(f"{work}/path", ("apt-get", "dpkg-query", "sudo", "id")), f"{work}/log"
    installs = "for i in $(seq 60); do echo \"Get:$i x\"; done; for i in $(seq 60); do echo \"Setting up x\"; done"
    for name, does in (("dpkg-query", "exit 1"), ("id", "echo $ID"),
                       ("apt-get", f'echo "$@" >> {log}; [ "$4" != install ] || {{ {installs}; }}')):
        os.chmod(write(f"{path}/{name}", f"#!/bin/sh\n{does}\n"), 0o755)
    done = shell(path, "need chex-nothing", ID="0")
    assert "\n60 downloaded, 0 unpacked, 40 set up\n" in done.stdout, done.stdout
    assert slurp(log).count(b"-o DPkg::Lock::Timeout=") == 2, slurp(log)
    os.unlink(log)
    said = shell(path, "need chex-nothing", ID="1000").stdout
    assert re.search("^Only root can install .*apt-get install chex-nothing$", said, re.M), said
    assert not os.path.exists(log)


@case("without root, sudo that refuses is no end, and where configure fails too, the last line names the wheel")
def _(work):
    path, source = programs(f"{work}/path", ("apt-get", "dpkg-query", "sudo", "id")), f"{work}/source"
    for name, does in (("dpkg-query", "exit 1"), ("id", "echo $ID"), ("apt-get", "exit 1"), ("sudo", "exit 1")):
        os.chmod(write(f"{path}/{name}", f"#!/bin/sh\n{does}\n"), 0o755)
    said = shell(path, "need chex-nothing", ID="1000").stdout
    assert said.endswith("the build goes on without them: chex-nothing\n"), said
    says(shell(path, "need chex-nothing", 1, ID="0"), "could not install chex-nothing")
    os.makedirs(f"{source}/m4")
    for name in ("configure.ac", "Makefile.in"):
        write(f"{source}/{name}", "")
    os.chmod(write(f"{source}/configure", "#!/bin/sh\necho lacks libpng >&2\nexit 1\n"), 0o755)
    for user, named in (("1000", True), ("0", False)):
        done = shell(path, f"source={source}; build_in {work}/build", 1, ID=user)
        says(done, "lacks libpng", f"configure failed in {work}/build")
        assert (done.stderr.rstrip().splitlines()[-1].split() == ["pip", "install", "chex-tools"]) == named, done.stderr


@case("what was built with a library that is gone, or of another version, is built again")
def _(work):
    folder = f"{work}/build"
    os.mkdir(folder)
    write(f"{folder}/Makefile", "clean:\n\techo cleaned >> log\n")
    write(f"{folder}/config.status", "#!/bin/sh\necho \"--with-a='b c'\"\n")
    os.chmod(f"{folder}/config.status", 0o755)
    source = f"{work}/source"
    os.makedirs(f"{source}/tests")
    shutil.copy(os.path.join(SOURCE, "tests", "setup.sh"), f"{source}/tests")
    write(f"{source}/configure", '#!/bin/sh\necho "configure $*" >> log\n')
    os.chmod(f"{source}/configure", 0o755)

    def configured(*lines):
        """The answers are these lines."""
        write(f"{work}/answers", "".join(line + "\n" for line in lines))
        run(["/bin/sh", "-euc", f"source={source}; . {source}/tests/setup.sh; answers() {{ cat {work}/answers; }}; "
             f"configured {folder}"], env={"PATH": os.environ["PATH"]})
        log = slurp(f"{folder}/log").decode() if os.path.exists(f"{folder}/log") else ""
        write(f"{folder}/log", "")
        return log

    once = "configure --quiet --with-a=b c\n"
    assert configured("module a 1") == once  # of a folder that was configured by hand nothing is known
    assert configured("module a 1") == ""
    assert configured("module a 1", "module b 1") == once
    assert configured("module a 2", "module b 1") == once + "cleaned\n"
    assert configured("module b 1") == once + "cleaned\n"
    assert configured("module b 1") == ""


def tests_of(work, path, makefile):
    """./run-tests.sh --fast in a source folder with a build folder of this Makefile, where nothing can be installed."""
    source = f"{work}/source"
    shutil.rmtree(source, ignore_errors=True)
    os.makedirs(f"{source}/tests")
    os.makedirs(f"{source}/build")
    shutil.copy(os.path.join(SOURCE, "run-tests.sh"), source)
    shutil.copy(os.path.join(SOURCE, "tests", "setup.sh"), f"{source}/tests")
    write(f"{source}/configure", "#!/bin/sh\nexit 1\n")
    os.chmod(f"{source}/configure", 0o755)
    write(f"{source}/build/.answers", "")
    write(f"{source}/build/Makefile", "all check:\n" + makefile)
    done = run(["/bin/sh", f"{source}/run-tests.sh", "--fast"], None, env={"PATH": path})
    return done.returncode, done.stdout


@case("a suite that cannot run is a failure that names what is missing, not a skip")
def _(work):
    path = programs(f"{work}/bin", ("dpkg-query", "apt-get"))
    good = "tally:\n\t@echo 'skip one: no disk'; echo '7 passed, 0 failed, 1 skipped'\n"
    code, text = tests_of(work, path, good + "missing-suites:\n")
    assert code == 0 and text.endswith("\n7 passed, 0 failed, 1 skipped\n"), (code, text)
    assert "not Debian" in text, text

    lacks = "missing-suites:\n\t@echo 'the unit tests: no Check'; echo 'ranks: no MPI'\n"
    code, text = tests_of(work, path, good + lacks)
    assert code == 1 and text.endswith("\n7 passed, 2 failed, 1 skipped\n"), (code, text)
    assert "FAIL not run: the unit tests: no Check\nFAIL not run: ranks: no MPI\n" in text, text

    whole = "tally:\n\t@echo 'whole check_x: every case was skipped'; echo '7 passed, 0 failed, 2 skipped'\n"
    code, text = tests_of(work, path, whole + "missing-suites:\n")
    assert code == 1 and text.endswith("\n7 passed, 1 failed, 2 skipped\n"), (code, text)
    assert "FAIL not run: check_x: every case was skipped\n" in text, text


@case("the tally counts, and names what was skipped whole and the seconds of each program")
def _(work):
    for name, result, log, seconds in (
            ("check_a", "PASS", "ok   one\nskip two: why\n3 passed, 0 failed, 1 skipped\n", "70, of processors 28"),
            ("check_b", "SKIP", "skip all: why not\n0 passed, 0 failed, 1 skipped\n", "1, of processors 1"),
            ("unit", "FAIL", "90%: Checks: 10, Failures: 1, Errors: 0\n", "100, of processors 99"),
            ("broken", "FAIL", "", "0, of processors 0")):
        write(f"{work}/{name}.log", f"{log}seconds {seconds}\n")
        write(f"{work}/{name}.trs", f":test-result: {result} {name}\n")
    logs = [f"{work}/{name}.log" for name in ("check_a", "check_b", "unit", "broken")]
    done = run(["/bin/sh", os.path.join(SOURCE, "tests", "tally.sh"), *logs], 1)
    assert done.stdout == ("skip two: why\nskip all: why not\nwhole check_b: every case was skipped\n"
                           "took   100 s, processors    99 s: unit\ntook    70 s, processors    28 s: check_a\n"
                           "took     1 s, processors     1 s: check_b\ntook     0 s, processors     0 s: broken\n"
                           "12 passed, 2 failed, 2 skipped\n"), done.stdout


@case("a test's log ends with its seconds, and its exit code stays")
def _(_work):
    timed = ["/bin/sh", os.path.join(SOURCE, "tests", "timed.sh"), "/bin/sh", "-c"]
    assert re.fullmatch(r"seconds \d+, of processors 0\n", run([*timed, "exit 77"], 77).stdout)
    busy = 'i=0; while [ $i -lt 1000000 ]; do i=$((i + 1)); done; echo "1 passed, 0 failed, 0 skipped"'
    done = run([*timed, busy]).stdout
    assert re.fullmatch(r"1 passed, 0 failed, 0 skipped\nseconds \d+, of processors [1-9]\d*\n", done), done


if __name__ == "__main__":
    sys.exit(case.main())
