# SPDX-License-Identifier: Apache-2.0
"""Selects records as --where of chex-inspect does, see chex-inspect(1), list."""
import re
from collections.abc import Sequence
from typing import Any, Callable, Union

import numpy as np

from .errors import UsageError

Column = Callable[[str], Any]
KEYS = ("view", "sex", "age", "patient", "name", "split")
ALIASES = {"infiltrate": "infiltration"}


def _fold(name: str) -> str:
    """Findings are compared without case, blanks, '_' and '-'."""
    return _lower(re.sub(r"[ \t_-]", "", name))


def _lower(text: str) -> str:
    """Only ASCII, as the programs do."""
    return re.sub("[A-Z]", lambda m: m.group().lower(), text)


def _upper(text: str) -> str:
    return re.sub("[a-z]", lambda m: m.group().upper(), text)


def _finding(term: str, findings: Sequence[str], column: Column) -> Any:
    name, equals, value = term.partition("=")
    if equals and value not in ("0", "1"):
        raise UsageError(f"where: a finding is =0 or =1, not '{term}'")
    wanted = 0 if value == "0" else 1
    index: dict[str, int] = {}
    for i, finding in enumerate(findings):
        index.setdefault(_fold(finding), i)
    folded = _fold(name)
    found = index.get(folded, index.get(ALIASES.get(folded, "")))
    labels = column("label")
    if found is not None:
        return labels[:, found] == wanted
    if folded != "nofinding":
        raise UsageError(f"where: no finding '{name}'; there are {', '.join(findings)}, No_Finding, and "
                         + ", ".join(f"{key}=" for key in KEYS))
    return (labels == 0).all(axis=1) if wanted else (labels == 1).any(axis=1)


def _ages(value: str) -> tuple[int, int]:
    found = re.fullmatch(r"([0-9]{1,3})(?:-([0-9]{1,3}))?", value)
    if not found or (found.group(2) and int(found.group(2)) < int(found.group(1))):
        raise UsageError(f"where: an age is years, as 60 or 40-59, not '{value}'")
    return int(found.group(1)), int(found.group(2) or found.group(1))


def _term(term: str, findings: Sequence[str], splits: Sequence[str], column: Column) -> Any:
    """Which records match one term."""
    if not term:
        raise UsageError("where: an empty term")
    key, equals, value = term.partition("=")
    key = _lower(key)
    if not equals or key not in KEYS:
        return _finding(term, findings, column)
    if not value:
        raise UsageError(f"where: {key}= needs a value")
    if key == "age":
        least, most = _ages(value)
        with np.errstate(invalid="ignore"):  # NaN, unknown, matches nothing
            return (column("age") >= least) & (column("age") < most + 1)
    if key == "sex":
        if value not in ("M", "F", "U", "m", "f", "u"):
            raise UsageError(f"where: a sex is M, F or U, not '{value}'")
        return column("sex") == value.upper()
    if key == "view":
        return np.array([_upper(v) for v in column("view").tolist()], dtype=np.str_) == _upper(value)
    if key == "patient":
        return np.isin(column("patient"), [value, value.rjust(8, "0")])
    if key == "split" and value not in splits:
        raise UsageError(f"where: no split '{value}'; there are {', '.join(splits)}")
    return column("filename" if key == "name" else key) == value


def select(where: Union[str, Sequence[str]], findings: Sequence[str], splits: Sequence[str], column: Column) -> Any:
    """A mask of the records that match each of the texts.

    A text matches if one of its terms does, which commas separate.  column gives the values of a field by name."""
    try:
        texts: list[str] = [where] if isinstance(where, str) else list(where)
    except TypeError:
        texts = []
    if not texts or not all(isinstance(text, str) for text in texts):
        raise UsageError(f"where is a text or a list of texts, not {where!r}")
    masks = []
    for text in texts:
        terms = [_term(term, findings, splits, column) for term in text.split(",")]
        masks.append(np.logical_or.reduce(terms))
    return np.logical_and.reduce(masks)
