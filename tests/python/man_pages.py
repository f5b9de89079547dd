# SPDX-License-Identifier: Apache-2.0
"""Literal blocks of the man pages."""
import re


def unescape(text):
    """The characters that mdoc source stands for, as far as our pages use them."""
    return text.replace("\\&", "").replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\")


def blocks(page, kind):
    """{name: text} of the literal blocks after lines .\\" KIND: NAME."""
    found = {}
    for match in re.finditer(rf'^\.\\" {kind}: (\w+)\n\.Bd .*\n((?:.*\n)*?)\.Ed$', page, re.M):
        found[match.group(1)] = unescape(match.group(2))
    return found
