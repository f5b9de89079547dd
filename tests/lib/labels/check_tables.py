#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare what check-tables prints with an independent reading of the same files (csv, gzip, hashlib: stdlib only).

    check_tables.py [PROGRAM]      PROGRAM: ./check-tables

First with small files made here, that hold the forms met in the wild; then, where $CHEX_NIH is a folder with NIH's
own files (csv/, lists/), with all rows of those.  One line a group; exit code 1 where something differs.
"""
import csv
import gzip
import hashlib
import io
import os
import struct
import subprocess
import sys
import tempfile

FINDINGS = ["Atelectasis", "Cardiomegaly", "Effusion", "Infiltration", "Mass", "Nodule", "Pneumonia", "Pneumothorax",
            "Consolidation", "Edema", "Emphysema", "Fibrosis", "Pleural_Thickening", "Hernia"]
YEARS = {"Y": lambda x: x, "M": lambda x: x / 12, "W": lambda x: x * (7 / 365.25), "D": lambda x: x / 365.25}


class Tally:
    """Groups that passed, failed, were skipped."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def skip(self, name):
        self.skipped += 1
        print(f"skip {name}")

    def check(self, name, wanted, got):
        """Compare two lists; print the first difference."""
        if wanted == got:
            self.passed += 1
            print(f"ok   {name} ({len(wanted)})")
            return
        self.failed += 1
        print(f"FAIL {name}: {len(wanted)} expected, {len(got)} read")
        for i in range(max(len(wanted), len(got))):
            w = wanted[i] if i < len(wanted) else None
            g = got[i] if i < len(got) else None
            if w != g:
                print(f"     item {i}: expected {w!r}, read {g!r}")
                return


# ---- this side's reading ---------------------------------------------------------------------------------------


def read_bytes(path):
    with open(path, "rb") as f:
        data = f.read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def read_rows(path):
    return list(csv.reader(io.StringIO(read_bytes(path).decode("utf-8-sig"), newline="")))


def patient_of(text):
    text = text.strip()
    return text.zfill(8) if text.isdigit() else text


def single(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def age_of(text):
    """(years or None, whether the number is one that no age can be)"""
    text = text.strip()
    unit = "Y"
    if text and text[-1].upper() in YEARS:
        unit = text[-1].upper()
        text = text[:-1]
    try:
        years = YEARS[unit](float(text))
    except ValueError:
        return None, False
    return (None, True) if years < 0 or years > 120 else (years, False)


def mask_of(text):
    mask = 0
    for part in text.split("|"):
        part = part.strip().replace(" ", "_")
        if part.lower() not in ("no_finding", "nofinding"):
            mask |= 1 << FINDINGS.index({"Infiltrate": "Infiltration"}.get(part, part))
    return mask


def read_labels(path):
    """Entries sorted by name: (name, patient, mask, age, sex, view), and the facts."""
    rows = [r for r in read_rows(path) if r]
    header = [h.strip() for h in rows[0]]
    column = {name: header.index(name) for name in ("Image Index", "Finding Labels", "Patient ID", "Patient Age",
                                                    "Patient Gender", "View Position")}
    entries, impossible, unknown = {}, 0, 0
    for row in rows[1:]:
        name = row[column["Image Index"]].strip()
        age, bad = age_of(row[column["Patient Age"]])
        entry = (name, patient_of(row[column["Patient ID"]]), mask_of(row[column["Finding Labels"]]), age,
                 row[column["Patient Gender"]].strip()[:1].upper() or "U",
                 row[column["View Position"]].strip().upper() or "U")
        if name not in entries:
            impossible += bad
            unknown += age is None
        entries[name] = entry
    data = sorted(entries.values(), key=lambda e: e[0].encode())
    facts = {
        "sha256": hashlib.sha256(read_bytes(path)).hexdigest(),
        "patients": str(len({e[1] for e in data})),
        "rows": str(len(rows) - 1),
        "duplicates": str(len(rows) - 1 - len(data)),
        "unknown_ages": str(unknown),
        "impossible_ages": str(impossible),
    }
    return data, facts


def share(patient, seed):
    """u * 2^64 of split.h"""
    return int.from_bytes(hashlib.sha256(f"chex-split:{seed}:{patient}".encode()).digest()[:8], "big")


def split_by_patient(patient, percent, seed):
    u = share(patient, seed)
    if u * 100 < percent[0] << 64:
        return "train"
    return "val" if u * 100 < (percent[0] + percent[1]) << 64 else "test"


def read_list(path):
    return [line.split()[0].rsplit("/", 1)[-1] for line in read_bytes(path).decode("utf-8-sig").split("\n")
            if line.strip()]


# ---- the program's -----------------------------------------------------------------------------------------------


def run(program, *arguments):
    """(list of lines split at tabs, facts)"""
    done = subprocess.run([program, *arguments], capture_output=True, check=False)
    if done.returncode != 0:
        return [["exit code", str(done.returncode), done.stderr.decode()]], {}
    lines = done.stdout.decode().split("\n")[:-1]
    facts = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# "))
    return [line.split("\t") for line in lines if not line.startswith("#")], facts


def check_labels(tally, program, name, path, count=None):
    data, facts = read_labels(path)
    got, got_facts = run(program, "labels", path)
    wanted = [[e[0], e[1], str(e[2]), None if e[3] is None else single(e[3]), e[4], e[5]] for e in data]
    for row in got:
        if len(row) == 6:
            # nine digits name a float exactly; the nearest float of the text is the one that was printed
            row[3] = None if row[3] == "nan" else single(float(row[3]))
    tally.check(f"{name}: entries", wanted, got)
    tally.check(f"{name}: facts", facts, got_facts)
    if count is not None:
        tally.check(f"{name}: number of entries", [count], [len(got)])


def check_percents(tally, program, name, path, rule, percent, seed):
    data, _ = read_labels(path)
    got, _ = run(program, "split", rule, path)
    tally.check(f"{name}: {rule}", [[e[0], e[1], split_by_patient(e[1], percent, seed)] for e in data], got)


def check_official(tally, program, name, path, folder, lists):
    """lists: the two files.  Returns what the program said."""
    data, _ = read_labels(path)
    train, test = (set(read_list(p)) for p in lists)
    wanted = []
    for e in data:
        part = "test" if e[0] in test else "train" if e[0] in train else None
        if part == "train" and share(e[1], 0) * 100 < 10 << 64:
            part = "val"
        wanted.append([e[0], e[1], part])
    got, _ = run(program, "split", "official", path, folder)
    tally.check(f"{name}: official", wanted, got)
    return got


def check_names(tally, program, name, path, wanted, repeated=0):
    got, facts = run(program, "names", path)
    tally.check(f"{name}: names", [[n] for n in sorted(set(wanted))], got)
    tally.check(f"{name}: repeated", [str(repeated)], [facts.get("repeated")])


def check_boxes(tally, program, name, path, count):
    got, _ = run(program, "boxes", path)
    read = [(r[0], r[1].replace("Infiltrate", "Infiltration"), *map(float, r[2:6])) for r in read_rows(path)[1:] if r]
    order = sorted(read, key=lambda r: (r[0], FINDINGS.index(r[1])))
    tally.check(f"{name}: boxes", [list(r) for r in order], [r[:2] + [float(x) for x in r[2:]] for r in got])
    tally.check(f"{name}: number of boxes", [count], [len(got)])


# ---- files made here -------------------------------------------------------------------------------------------

HEADER_2017 = ("Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
               "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y],")


def made_rows(count):
    """Rows in the form of 2017, from a small generator that is the same everywhere."""
    state = 12345
    rows = []
    for patient in range(1, count + 1):
        for visit in range(1 + patient % 3):
            state = (state * 1103515245 + 12345) % (1 << 31)
            chosen = [f for i, f in enumerate(FINDINGS) if state >> (i + 8) & 1 and i % 3 == patient % 3]
            age = ["058Y", "003M", "001D", "414Y", "02W", "", "58", "-3", "abc", "120", "121"][state % 11]
            rows.append([f"{patient:08d}_{visit:03d}.png", "|".join(chosen) or "No Finding", f"{visit:03d}",
                         f"{patient:08d}", age, "MF"[state >> 5 & 1], ["PA", "AP", "ap", ""][state >> 7 & 3], "2682",
                         "2749", "0.143", "0.143"])
    return rows


def write(folder, name, data):
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(data)
    return path


def check_made(tally, program):
    with tempfile.TemporaryDirectory() as folder:
        rows = made_rows(200)
        text = "\r\n".join([HEADER_2017] + [",".join(r) for r in rows]).encode()
        plain = write(folder, "first.csv", text)
        check_labels(tally, program, "made, form of 2017", plain, len(rows))
        check_labels(tally, program, "made, gzip of two members",
                     write(folder, "first.csv.gz", gzip.compress(text[:5000]) + gzip.compress(text[5000:])), len(rows))
        # Reversed, quoted, with a byte order mark, blank lines, repetitions, and ids without zeros.
        out = io.StringIO()
        writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerow(HEADER_2017.rstrip(",").split(","))
        for row in reversed(rows):
            writer.writerow(row[:3] + [str(int(row[3]))] + row[4:])
        out.write("\n\n")
        writer.writerow(rows[7])
        check_labels(tally, program, "made, quoted and repeated",
                     write(folder, "second.csv", b"\xef\xbb\xbf" + out.getvalue().encode()), len(rows))

        for rule, percent, seed in (("patient:70,10,20", (70, 10, 20), 0), ("patient:70,10,20:5", (70, 10, 20), 5),
                                    ("patient:1,0,99", (1, 0, 99), 0),
                                    ("patient:33,33,34:18446744073709551615", (33, 33, 34), 2**64 - 1)):
            check_percents(tally, program, "made", plain, rule, percent, seed)

        names = [r[0] for r in rows]
        train = [n for n in names if int(n[:8]) % 5]
        test = [n for n in names if int(n[:8]) % 5 == 0]
        lists = [write(folder, "train_val_list.txt", "\n".join(train).encode()),
                 write(folder, "test_list.txt.gz", gzip.compress("\r\n".join(test).encode()))]
        check_official(tally, program, "made", plain, folder, lists)
        check_names(tally, program, "made list", lists[0], train)
        labelled = "\n".join(f"images/{n} 0 1 0" for n in reversed(test)) + "\n" + test[0]
        check_names(tally, program, "made list with labels", write(folder, "labels.txt", labelled.encode()), test, 1)
        check_names(tally, program, "made CSV as list", plain, names)

        split = {n: "abc"[int(n[:8]) % 3] for n in names}
        lines = "".join(f"{n},{split[n].upper()}\n" for n in names)
        listed = write(folder, "splits.csv", ("name,Split\n" + lines).encode())
        got, _ = run(program, "split", "file:" + listed, plain)
        tally.check("made: file:", [[n, n[:8], split[n]] for n in sorted(names)], got)


# ---- NIH's own -------------------------------------------------------------------------------------------------


def check_real(tally, program, folder):
    files = {name: os.path.join(folder, name) for name in
             ("csv/Data_Entry_2017.csv.gz", "csv/Data_Entry_2017_v2020.csv.gz", "csv/sample_labels.csv.gz",
              "csv/BBox_List_2017.csv.gz", "lists/train_val_list.txt.gz", "lists/test_list.txt.gz",
              "lists/chexnet_val_list.txt.gz")} if folder else {}
    groups = (("csv/Data_Entry_2017.csv.gz", 112120), ("csv/Data_Entry_2017_v2020.csv.gz", 112120),
              ("csv/sample_labels.csv.gz", 5600))
    lists = ["lists/train_val_list.txt.gz", "lists/test_list.txt.gz"]

    if not folder:
        for name in [g[0] for g in groups] + lists + ["lists/chexnet_val_list.txt.gz", "csv/BBox_List_2017.csv.gz",
                                                      "official split", "patient:70,10,20"]:
            tally.skip(f"{name} (CHEX_NIH is not set)")
        return
    for name, count in groups:
        check_labels(tally, program, name, files[name], count)
    for name in lists + ["lists/chexnet_val_list.txt.gz"]:
        check_names(tally, program, name, files[name], read_list(files[name]))
    boxes = [r[0] for r in read_rows(files["csv/BBox_List_2017.csv.gz"])[1:] if r]
    check_names(tally, program, "csv/BBox_List_2017.csv.gz", files["csv/BBox_List_2017.csv.gz"], boxes,
                len(boxes) - len(set(boxes)))
    check_boxes(tally, program, "csv/BBox_List_2017.csv.gz", files["csv/BBox_List_2017.csv.gz"], 984)
    for name, _ in groups:
        got = check_official(tally, program, name, files[name], os.path.join(folder, "lists"),
                             [files[n] for n in lists])
        if name != "csv/sample_labels.csv.gz":
            train = [r for r in got if r[2] in ("train", "val")]
            test = [r for r in got if r[2] == "test"]
            patients = {r[1] for r in train}, {r[1] for r in test}
            tally.check(f"{name}: images and patients of the official lists, shared patients",
                        [86524, 25596, 28008, 2797, 0],
                        [len(train), len(test), len(patients[0]), len(patients[1]), len(patients[0] & patients[1])])
        check_percents(tally, program, name, files[name], "patient:70,10,20", (70, 10, 20), 0)


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "./check-tables"
    tally = Tally()
    check_made(tally, program)
    check_real(tally, program, os.environ.get("CHEX_NIH"))
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
