"""Text as LaTeX that prints it as it is, in plain ASCII: any engine and encoding compiles it."""

from __future__ import annotations

import re
import unicodedata

SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "−": r"$-$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "…": r"\ldots{}",
    "ß": r"\ss{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
    **{character: "\\" + character for character in "#$%&_{}"},
    # An argument, or a shorthand of babel, where it follows the end of a row or a letter.
    "[": "{[}",
    "*": "{*}",
    '"': r"\char34{}",
}
LIGATURES = re.compile(r"(?<=[-`',?!])(?=[-`',])")
"""Between characters that TeX would draw as one, e.g. two hyphens as a dash."""
ACCENTS = {
    "\u0300": r"\`",
    "\u0301": r"\'",
    "\u0302": r"\^",
    "\u0303": r"\~",
    "\u0304": r"\=",
    "\u0306": r"\u",
    "\u0307": r"\.",
    "\u0308": r"\"",
    "\u030a": r"\r",
    "\u030b": r"\H",
    "\u030c": r"\v",
    "\u0327": r"\c",
}


def tex(text: str) -> str:
    """On one line; a character without a plain LaTeX command becomes \\texttt{U+65E5}."""
    parts = LIGATURES.split(" ".join(text.split()))
    return "{}".join("".join(map(character, part)) for part in parts)


def character(c: str) -> str:
    if c in SPECIAL:
        return SPECIAL[c]
    if " " <= c <= "~":
        return c
    base, *marks = list(unicodedata.normalize("NFD", c))
    if base.isascii() and base.isalpha() and len(marks) == 1 and marks[0] in ACCENTS:
        return f"{ACCENTS[marks[0]]}{{{base}}}"
    return rf"\texttt{{U+{ord(c):04X}}}"
