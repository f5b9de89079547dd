# SPDX-License-Identifier: Apache-2.0
"""The forms of instructions in a text of PTX, for example "@p bra label" or "setp.lt.u32 pred, 32, number".

A form is an opcode with all of its modifiers, and the kinds of its operands: the bits of a register, pred for a
predicate, the name of a special register, number, label, or name (of a parameter, a variable in shared memory or a
function).  The offset of an address is left out.
"""
import re

BITS = {"pred": "pred", "b16": "16", "u16": "16", "s16": "16", "f16": "16", "b32": "32", "u32": "32", "s32": "32",
        "f32": "32", "b64": "64", "u64": "64", "s64": "64", "f64": "64"}
SPECIAL = re.compile(r"%(n?tid|n?ctaid)\.[xyz]|%(lane|warp)id")
# A label, a brace of a block, a declaration or directive, or an instruction with its guard.  A brace belongs to a
# vector of registers if it follows a word or a comma.
STATEMENT = re.compile(r"""\s*(?:
    (?P<label>[\w$]+):(?!:) | (?P<directive>\.(?:loc|file|pragma|section)\b[^\n]*) |
    \.reg\s+\.(?P<type>\w+)\s+(?P<names>[^;]*); | \.[^;{}]*[;{}]? | [{}] | ; |
    (?:@(?P<not>!?)(?P<guard>%?\w+)\s+)?(?P<opcode>[a-z][\w.:]*)\s*(?P<operands>[^;]*);
    )""", re.VERBOSE)


def kind(operand, registers):
    if operand[0] in "{([":
        inside = [kind(part, registers) for part in re.split(r"\s*,\s*", operand[1:-1].strip()) if part]
        return operand[0] + " ".join(inside) + operand[-1]
    if "|" in operand:
        return "|".join(kind(part, registers) for part in operand.split("|"))
    operand = operand.split("+")[0].strip()
    if operand in registers or re.sub(r"\d+$", "", operand) in registers:
        return registers.get(operand) or registers[re.sub(r"\d+$", "", operand)]
    if SPECIAL.fullmatch(operand):
        return operand
    return "number" if re.match(r"-?\d", operand) else "_" if operand == "_" else "name"


def forms(text):
    """The set of the forms in a text."""
    found = set()
    registers = {}
    text = re.sub(r"//[^\n]*", "", text)
    for entry in re.split(r"(?m)^(?=\.visible \.entry|\.func)", text)[1:]:
        at = entry.find("\n{")
        while at >= 0 and entry[at:].strip():
            match = STATEMENT.match(entry, at)
            assert match, f"not PTX: {entry[at:at + 80]}"
            at = match.end()
            if match["type"]:
                for name in match["names"].split(","):
                    registers[re.sub(r"<\d+>", "", name).strip()] = BITS[match["type"]]
            elif match["opcode"]:
                operands = re.findall(r"\{[^}]*\}|\[[^]]*\]|\([^)]*\)|[^\s,][^,]*", match["operands"])
                is_jump = match["opcode"].startswith("bra")
                kinds = ["label" if is_jump else kind(operand.strip(), registers) for operand in operands]
                guard = f"@{match['not']}p " if match["guard"] else ""
                found.add((guard + match["opcode"] + " " + ", ".join(kinds)).strip())
    return found
