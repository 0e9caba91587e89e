"""Word lists, one file a language: the only module that reads them, each file once.

A third language is a file more. A list is one string: words between spaces, alternatives of a pattern one
a line, or a value before the words it stands for (`2 two, a couple`), one group a line or before a semicolon.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def languages() -> dict[str, dict[str, Any]]:
    """Every language by its short name, with its sections of lists."""
    files = sorted(path for path in Path(__file__).parent.iterdir() if path.suffix == ".toml")
    return {path.stem: tomllib.loads(path.read_text("utf-8")) for path in files}


def block(name: str, language: str) -> str:
    """The list `section.key` of a language as it is written; empty if that language has none."""
    section, key = name.split(".")
    return str(languages()[language].get(section, {}).get(key, ""))


def section(name: str) -> dict[str, Any]:
    """One section of every language as it is written, by the language's short name."""
    return {language: sections[name] for language, sections in languages().items() if name in sections}


def listed(name: str, *, spaced: bool | None = None) -> frozenset[str]:
    """The words of a list in every language; or in those that write spaces between words, or do not."""
    return frozenset(word for language in _written(spaced) for word in block(name, language).split())


def lines(name: str, language: str) -> list[str]:
    """The lines of a list of a language; another list of its section, in braces, stands for its text."""
    text, section = block(name, language), name.partition(".")[0]
    for key, other in languages()[language].get(section, {}).items():
        text = text.replace(f"{{{key}}}", other)
    return [line for line in map(str.strip, text.splitlines()) if line]


def valued(name: str, language: str | None = None) -> dict[str, str]:
    """The value of every word of a list, in one language or in all."""
    values: dict[str, str] = {}
    for one in [language] if language else languages():
        for group in filter(None, map(str.strip, block(name, one).replace(";", "\n").splitlines())):
            value, _, words = group.partition(" ")
            values.update(dict.fromkeys(words.split(", "), value))
    return values


def cue(name: str) -> str:
    """A pattern of the lines of a list in every language; whole words where there are spaces."""
    parts = []
    for language, sections in languages().items():
        alternatives = "|".join(lines(name, language))
        if alternatives:
            parts.append(rf"\b(?:{alternatives})\b" if sections["spaced"] else alternatives)
    return "|".join(parts)


def _written(spaced: bool | None) -> list[str]:
    return [
        name for name, sections in languages().items() if spaced is None or bool(sections["spaced"]) == spaced
    ]
