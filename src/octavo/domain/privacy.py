"""Secrets and personal data in a text: what stands where, and the text without it.

Own compiled patterns behind cheap pre-filters, every quantifier bounded or possessive, so that the cost is
linear in the text. Where people would differ:

- A password, key or token counts when a value follows its name (`password: …`, `password is …`,
  `รหัสผ่านคือ …`) and the value is no state word ("required"), placeholder, code or prose.
- A long run without a name is a `token` when lower case, upper case and digits alternate as chance makes
  them. Hex digests, uuids, ULIDs, public keys, chain addresses and parts of URLs are not: in a sentence
  they name things. After a name such as `token=` they count.
- Nine bare digits are an SSN only after its name; 123-45-6789 and 123 45 6789 are one anywhere.
- Thirteen bare digits that read as milliseconds since 1970 or as a Thai barcode are a Thai national id
  only after its name.
- 123-4-56789-0 is a Thai bank account beside a word for one ("บัญชี", "โอน", a bank's name) and behind none for
  an order or a phone; ten or twelve bare digits only after "เลขที่บัญชี" or "account number".

Invisible characters, full-width letters, digits of other scripts and look-alike letters hide nothing;
letters set apart by spaces do.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from octavo import words
from octavo.domain.named_secrets import TAKEN, abroad, bearers, logins, named, pins, under
from octavo.domain.numbers import numbers
from octavo.domain.patterns import pattern
from octavo.domain.policy import PrivacyPolicy
from octavo.domain.text import fold
from octavo.domain.tokens import Span, tokens
from octavo.errors import BadInput

# Every name a finding can have; where two overlap, the earlier one names the whole.
NAMES = (
    "private_key", "jwt", "aws_key", "github_token", "slack_token", "openai_key", "google_key", "stripe_key",
    "card", "iban", "bank_account", "thai_id", "ssn", "bearer_token", "password", "pin", "api_key", "secret",
    "token", "email", "phone",
)  # fmt: skip
MAX_DEPTH = 64
_MOST_TOLD = 4_000  # characters of an error
HARD = PrivacyPolicy(phone="allow", email="allow")  # what is looked for where a person's address may stand

Detector = Callable[[str, str], Iterator[Span]]  # of a text as it looks, and in lower case

# A placeholder is read as a blank that is neither a name nor a value, so masking twice is masking once.
_PLACEHOLDER = pattern(rf"\[(?:{'|'.join(NAMES)})\]")


def find(text: str, policy: PrivacyPolicy) -> tuple[Span, ...]:
    """The secrets and the personal data of a text, in order, none overlapping another."""
    plain, places = _plain(text)
    if "[" in plain:
        plain = _PLACEHOLDER.sub(lambda m: TAKEN * len(m[0]), plain)
    low = plain.lower()
    detectors = _hinted(plain, low, policy)
    if not detectors:
        return ()
    spans = _merged(span for finds in detectors for span in finds(plain, low))
    if places is not None:
        spans = [(what, places[start], places[end - 1] + 1) for what, start, end in spans]
    return tuple(spans)


def is_suspect(text: str, policy: PrivacyPolicy) -> bool:
    """Whether a closer look at a text is worth while; if not, nothing is found in it or in any part of it."""
    plain, _ = _plain(text)
    return bool(_hinted(plain, plain.lower(), policy))


def mask(text: str, findings: Iterable[Span]) -> str:
    """The text with a typed placeholder in place of each finding."""
    parts, done = [], 0
    for what, start, end in sorted(findings, key=lambda span: (span[1], -span[2])):
        if start >= done:
            parts += [text[done:start], f"[{what}]"]
        done = max(done, end)
    return "".join((*parts, text[done:]))


def masked(text: str, policy: PrivacyPolicy) -> str:
    """The text without its secrets; what a mask brings to light is masked too."""
    for _ in range(4):
        findings = find(text, policy)
        if not findings:
            break
        text = mask(text, findings)
    return text


def tellable(text: str) -> str:
    """A text for an error or a log: what it repeats of an input is no secret, and has an end."""
    text = masked(text, HARD)
    return text if len(text) <= _MOST_TOLD else f"{text[:_MOST_TOLD]} …"


def clean_data(data: Any, policy: PrivacyPolicy) -> tuple[Any, set[str]]:
    """Nested data with its strings, numbers and keys masked, and what was found; a key tells of its value."""
    found: set[str] = set()
    return _cleaned(data, policy, "", found, 0), found


# Text of these characters alone hides nothing: ASCII, Thai without its digits, kana, Han, Hangul.
_ODD = pattern("[^\x01-\x7f\u0e01-\u0e4f\u3041-\u318e\u3400-\u9fff\uac00-\ud7a3]")
_HIDDEN = "\0"
_UNSEEN = "\0\u034f\u115f\u1160\u3164\uffa0"
_SIGNS = {"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "−": "-"}


class _Plain(dict[int, str]):
    """A table for `str.translate` that fills itself, up to a bound."""

    def __missing__(self, code: int) -> str:
        plain = _plain_character(chr(code))
        if len(self) < 8192:
            self[code] = plain
        return plain


def _plain_character(c: str) -> str:
    """The ASCII character that a reader takes it for, itself if none, NUL if it cannot be seen."""
    category = unicodedata.category(c)
    if category == "Cf" or c in _UNSEEN or "\u0300" <= c <= "\u036f" or "\ufe00" <= c <= "\ufe0f":
        return _HIDDEN
    if category == "Nd":
        return str(unicodedata.decimal(c))
    if category in ("Pd", "Zs"):
        return "-" if category == "Pd" else " "
    for form in (_SIGNS.get(c, c), unicodedata.normalize("NFKC", c), fold(c) if c.isalpha() else c):
        if len(form) == 1 and " " <= form <= "~":
            return form
    lower = c.lower()
    return c if len(lower) == 1 else lower[0]


_PLAIN = _Plain({code: chr(code) for code in (*range(1, 128), *range(0xE01, 0xE50))})


def _plain(text: str) -> tuple[str, list[int] | None]:
    """The text as it looks, and the place of each of its characters in the original (None: the same)."""
    if (text.isascii() and _HIDDEN not in text) or _ODD.search(text) is None:
        return text, None
    plain = text.translate(_PLAIN)
    if _HIDDEN not in plain:
        return plain, None
    places = [place for place, c in enumerate(plain) if c != _HIDDEN]
    return plain.replace(_HIDDEN, ""), places


# Bytes that tokens consist of, each as an x: sixteen in a row may be one. Other bytes as a space.
_TOKEN_CHARACTERS = (
    bytes(120 if chr(i).isalnum() or chr(i) in "_./+=:-" else 32 for i in range(128)) + b" " * 128
)
_SIXTEEN = b"x" * 16
_NO_DIGITS = bytes(i for i in range(256) if chr(i) not in "0123456789\n")
_PHONE = pattern(
    r"(?<![\w+./-])(?:\+[0-9](?:[ ().-]{0,2}[0-9]){7,14}|0[0-9]{1,2}[ -]?[0-9]{3}[ -]?[0-9]{3,4}"
    r"|0[0-9]{3,4} [0-9]{3,4} ?[0-9]{3,4}|0[0-9]{2} [0-9]{4} [0-9]{4}"
    r"|(?:1[ .-])?(?:\([0-9]{3}\) ?|[0-9]{3}[.-])[0-9]{3}[ .-][0-9]{4})(?![\w/-]|\.[0-9])",
    re.ASCII,
)
_EMAIL = pattern(r"(?<![\w.+-])[\w.+-]{1,64}+@[\w-]{1,63}+(?:\.[\w-]{1,63}+){1,8}", re.ASCII)
_STEMS = [stem for language in words.languages() for stem in words.lines("secrets.stems", language)]
_NAME_STEMS = tuple(filter(str.isascii, _STEMS))
_OTHER_NAME_STEMS = tuple(stem for stem in _STEMS if not stem.isascii())
_CODE_STEMS = ("recovery code", "backup code")
_ABROAD_STEMS = tuple(words.lines("secrets.abroad_stems", "en"))
# A look for a single one of their letters clears nearly every text that is not ASCII.
_ABROAD_LETTERS = pattern(
    f"[{''.join(sorted({c for stem in _ABROAD_STEMS for c in stem if not c.isascii()}))}]"
)
_PIN_STEMS = ("pin", "พิน", "otp", "cvv", "cvc", " code")


def _hinted(plain: str, low: str, policy: PrivacyPolicy) -> list[Detector]:
    """The detectors that may find something, by cheap hints: nearly every text gives none.

    A hint that a part of a text gives, the whole gives too.
    """
    found: list[Detector] = []
    data = plain.encode(errors="replace")
    if "://" in plain or ("-" in plain and _holds(plain, (" -u ", " -p", "--user"))):
        found.append(logins)
    if _SIXTEEN in data.translate(_TOKEN_CHARACTERS) or "-----BEGIN" in plain:
        found.append(tokens)
    digits = data.translate(None, _NO_DIGITS)
    if len(digits) >= 9 and max(map(len, digits.split(b"\n"))) >= 9:  # no number goes over the end of a line
        found.append(numbers)
    if "bearer" in low or "basic" in low:
        found.append(bearers)
    is_ascii = len(data) == len(plain)
    if _holds(low, _PIN_STEMS):
        found.append(pins)
    # A code is a hint of a PIN, too, so where nothing was found yet there is none.
    is_named = _holds(low, _NAME_STEMS) or (bool(found) and _holds(low, _CODE_STEMS))
    if is_named or (not is_ascii and _holds(low, _OTHER_NAME_STEMS)):
        found.append(named)
    if not is_ascii and _ABROAD_LETTERS.search(low) and _holds(low, _ABROAD_STEMS):
        found.append(abroad)
    if policy.email != "allow" and "@" in plain:
        found.append(_emails)
    if policy.phone != "allow":
        found.append(_phones)
    return found


def _emails(plain: str, _low: str) -> Iterator[Span]:
    yield from (("email", *m.span()) for m in _EMAIL.finditer(plain))


def _phones(plain: str, _low: str) -> Iterator[Span]:
    yield from (("phone", *m.span()) for m in _PHONE.finditer(plain))


def _holds(low: str, stems: tuple[str, ...]) -> bool:
    for stem in stems:  # noqa: SIM110 - a generator costs more than the searches
        if stem in low:
            return True
    return False


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for what, start, end in sorted(spans, key=lambda span: span[1:]):
        if merged and start < merged[-1][2]:
            other, first, last = merged[-1]
            merged[-1] = (min(what, other, key=NAMES.index), first, max(end, last))
        else:
            merged.append((what, start, end))
    return merged


def _cleaned(data: Any, policy: PrivacyPolicy, key: str, found: set[str], depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise BadInput(f"data is nested deeper than {MAX_DEPTH}", hint="flatten the data")
    match data:
        case str():
            return _cleaned_text(data, policy, key, found)
        case int() if not isinstance(data, bool):
            text = _cleaned_text(str(data), policy, key, found)
            return data if text == str(data) else text
        case Mapping():
            cleaned: dict[Any, Any] = {}
            for name, value in data.items():
                clean = _cleaned_text(name, policy, "", found) if isinstance(name, str) else name
                while clean in cleaned:  # two keys that mask to one must not cost a value
                    clean = f"{clean}'"
                cleaned[clean] = _cleaned(value, policy, str(name), found, depth + 1)
            return cleaned
        case list() | tuple():
            return type(data)([_cleaned(value, policy, key, found, depth + 1) for value in data])
    return data


def _cleaned_text(text: str, policy: PrivacyPolicy, key: str, found: set[str]) -> str:
    spans = find(text, policy)
    if not spans and key and (what := under(_plain(key)[0].lower(), text)):
        spans = ((what, 0, len(text)),)  # the key it stands under names a secret
    found.update(what for what, _, _ in spans)
    return masked(mask(text, spans), policy) if spans else text
