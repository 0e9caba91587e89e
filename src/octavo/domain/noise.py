"""PLACEHOLDER until the owner of this file writes the real one over it (same names)."""

from __future__ import annotations


def is_noise(text: str, signals: tuple[str, ...]) -> str | None:
    return None
