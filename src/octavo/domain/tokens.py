"""Tokens and keys in a text: known by their make, or by being as random as only they are."""

from __future__ import annotations

import re
from collections.abc import Iterator

from octavo.domain.patterns import pattern

Span = tuple[str, int, int]  # what it is, where it begins and ends

# Tokens known by their make.
_MAKE = pattern(
    r"(?<!\w)(?<!\w-)(?:"
    r"(?P<aws_key>A(?:KIA|SIA|GPA|IDA|ROA|NPA|NVA|BIA|CCA)[A-Z0-9]{16}(?![A-Za-z0-9]))"
    r"|(?P<github_token>gh[pousr]_[A-Za-z0-9]{20,255}+|github_pat_\w{20,255}+)"
    r"|(?P<slack_token>xox[abeoprs](?:\.xox[bp])?-[\w-]{10,255}+|xapp-[\w-]{10,255}+"
    r"|hooks\.slack\.com/services/T\w{5,20}/B\w{5,20}/\w{10,40})"
    r"|(?P<openai_key>sk-(?=[\w-]{0,255}[0-9])[\w-]{16,255}+)"
    r"|(?P<google_key>AIza[\w-]{30,60}+|ya29\.[\w.-]{20,512}+|GOCSPX-[\w-]{20,60}+)"
    r"|(?P<stripe_key>[prs]k_(?:live|test)_[A-Za-z0-9]{10,255}+|whsec_[\w+/=]{20,255}+)"
    r"|(?P<jwt>eyJ[\w-]{8,4096}+\.eyJ[\w-]{4,8192}+\.[\w-]{0,2048}+)"
    r"|(?P<token>(?:glpat-|npm_|hf_|pypi-|dop_v1_|shpat_|SG\.|AGE-SECRET-KEY-1|[0-9]{8,10}:AA|hvs\."
    r"|lin_api_|figd_|gsk_|pplx-|sbp_|fo1_|PMAK-|sq0[a-z]{3}-|tskey-|nvapi-|lsv2_"
    r"|(?:secret_|xai-|r8_)(?=\S{0,80}[0-9]))[\w.-]{20,512}+)"
    r"|(?P<api_key>(?:key-|dapi|SK)[0-9a-f]{32}(?![\w-]))"
    r")",
    re.ASCII,
)
_BLOCK = pattern(r"-----BEGIN (?:[A-Z0-9 ]{0,40}(PRIVATE KEY))?[A-Z0-9 ]{0,60}-----")
_RUN = pattern(r"[A-Za-z0-9_+/-]{20,}+={0,2}")
_PIECE = pattern(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9]")
# Runs that name things: hex, ULIDs, digests with their algorithm, public keys, chain addresses.
_PUBLIC = pattern(
    r"(?:0x)?[0-9a-fA-F-]+|[0-7][0-9A-HJKMNP-TV-Z]{25}|sha[0-9]{1,3}-.*|AAAA[BCE]3Nza.*"
    r"|[13][1-9A-HJ-NP-Za-km-z]{25,33}"
)


def tokens(plain: str, _low: str) -> Iterator[Span]:
    """Tokens and private keys, each with where it stands."""
    yield from ((m.lastgroup or "token", *m.span()) for m in _MAKE.finditer(plain))
    block_end = 0
    for m in _BLOCK.finditer(plain):
        if m.start() >= block_end:
            block_end = _block_end(plain, m.end())
            if m[1]:
                yield "private_key", m.start(), block_end
    for m in _RUN.finditer(plain):
        if is_random(m[0]) and not _in_address(plain, m.start()) and not _in_block(plain, m.start()):
            yield "token", *m.span()


def _block_end(plain: str, start: int) -> int:
    """Where a PEM block ends; one without an end reaches to the end of the text."""
    end = plain.find("-----END", start)
    close = plain.find("-----", end + 8) if end >= 0 else -1
    return close + 5 if close >= 0 else len(plain)


def _in_block(plain: str, place: int) -> bool:
    """Whether a place is a line of a PEM block, which is secret only as a whole."""
    return plain.rfind("-----BEGIN", max(0, place - 8192), place) > plain.rfind(
        "-----END", max(0, place - 8192), place
    )


def is_random(run: str) -> bool:
    """Whether a run mixes cases and digits in pieces as short as chance makes them."""
    if run.islower() or run.isupper() or not any(c.isdigit() for c in run) or _PUBLIC.fullmatch(run):
        return False
    is_path = 12 * run.count("/") >= len(run)
    return not is_path and len(run) < 2.7 * len(_PIECE.findall(run))


def _in_address(plain: str, place: int) -> bool:
    """Whether a place is inside a URL, a path or a data URI."""
    before = plain[max(0, place - 256) : place]
    word = before[max(before.rfind(c) for c in " \n\t\"'<>(") + 1 :]
    return "/" in word or word.endswith(";base64,")
