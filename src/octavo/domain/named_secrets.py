"""Secrets that follow their name: passwords, keys, bearer tokens, PINs, in English and Thai."""

from __future__ import annotations

import re
from collections.abc import Iterator

from octavo import words
from octavo.domain.patterns import pattern
from octavo.domain.text import STOP_WORDS
from octavo.domain.tokens import Span, is_random

TAKEN = "\uffff"  # stands for what is masked already: neither a name nor a value

# The names of secrets by family, which says what may follow. Each alternative starts with a plain letter and
# ends in an empty group: the first makes the search several times as fast, the second tells the family.
_FAMILIES = ("password", "pass", "code", "login", "phrase", "api_key", "key", "secret", "access", "token")
_NAMES = [
    (family, name)
    for family in _FAMILIES
    for language in words.languages()
    for name in words.lines(f"secrets.{family}_names", language)
]
_NAME = pattern("|".join(f"{name}()" for _, name in _NAMES))
_FAMILY = [family for family, _ in _NAMES]
_WHAT = {
    "phrase": "password", "pass": "password", "code": "password", "login": "password", "key": "secret",
    "access": "token",
}  # fmt: skip
_KEYS = ("api_key", "key", "access")  # names that leave no doubt: any value after a sign is the secret
_CLOSED = r"""[0-9]?[\\"'`*\])]{0,3}(?: \([^()\n]{1,30}\))?"""
_EQUALS = pattern(_CLOSED + r"[ \t]{0,4}(?::=|=>|->|→|==?|:|>|\|)[*_]{0,2}[ \t]{0,4}\n?[ \t]{0,4}")
_IS = pattern(
    _CLOSED + r"(?:(?: {1,3}(?:is|was|will be|would be|should be|used to be|ist|es|est|là|è|é|adalah)|'s"
    r"|[?.]? (?:it|that)(?:'?s| is))"
    r"(?: now| still| currently| just)?:? | {0,2}(?:คือ|เป็น|ว่า)[ :]{0,2})"
)
_TO = pattern(_CLOSED + r" (?:(?:has been|was|is|got) )?(?:(?:changed|set|reset|updated) )?to ")
_BESIDE = pattern(
    _CLOSED + r"(?: {1,3}(?:[^\w\s] {1,2})?|\n)"
    r"|(?:ของ|อีเมล|เมล|เฟซ|ไลน์|ผม|ฉัน|หนู|เรา|ใหม่|เก่า|ไวไฟ|บ้าน|คอม|มือถือ|บริษัท|ร้าน|แม่|พ่อ|พี่"
    r"|น้อง){1,4} "
)
_OF = pattern(
    r" (?:for|of|to|on|at|in|from) [^\n.,:;!?=]{1,40}?(?= is | was |:|=)"
    r"|(?:[ก-๏ a-z0-9@-]|\.(?! )){1,40}?(?= ?คือ| ?เป็น|:|=)"
)
_PAIR = pattern(r"(?::| is| are| with| as|ด้วย|คือ){0,2} {0,2}[^\s/:|=]{2,64} ?[/:|] ?(?=[^\s/])")
_ACCOUNT = pattern(r"ล็อกอิน|login|log in|user|ยูส|อีเมล|email|ไอดี|บัญชี")
_BEFORE = pattern(
    r"(?<!\S)(\S{4,64}+) (?:is|was|as) (?:(?:my|the|our|your|new|old|wifi|admin|root|a) ){0,3}$"
)
_VALUE = pattern(
    r"""\\?[bru]?(?P<quote>["'`])(?P<quoted>[^"'`\\\n]{1,128})\\?(?P=quote)"""
    r"""|(?P<bare>(?:[^\s"'`,;&<ก-๛\uffff]|<(?!/)|["'`](?=\w)|[,;&](?!\s|$|[A-Za-z_ ]{1,20}[=:])){1,256})"""
    r"""|(?P<thai>[ก-๏]{2,20}[0-9]{2,8})(?![ก-๏])"""
)
_LOGIN = pattern(
    r"://[^\s/:@]{0,64}:([^\s/@]{1,128})@|(?:\s-u|--user)[ =]['\"]?[^\s:'\"]{1,64}:([^\s'\"]{3,128})"
    r"|mysql[^\n]{0,80}? -p([^\s'\"-][^\s'\"]{2,63})"
)
_BEARER = pattern(
    r"(?:bearer(?<![\w-]bearer)|authorization:? {0,2}basic)[ :=]{1,3}(?:token[ :=]{1,3}(?:is )?)?"
    r"([\w.~+/=-]{6,4096}+)",
    re.ASCII,
)
_PIN = pattern(
    r"(pin(?<![\w-]pin)|พิน(?:โค้ด)?|pin-?kod|otp(?<![\w-]otp)|cvv(?<![\w-]cvv)2?|cvc(?<![\w-]cvc)2?"
    r"|(?:door|gate|alarm|entry|lock|safe|verification|security|unlock|sms|2fa)(?= code))"
    r"( ?code| number| no)?"
    r"(?: (?:for|of|to|on) [^\n.:;!?=]{1,30}?| ?ของ[ก-๏]{1,12})?(?: is| was| ?:| ?=| ?คือ| ?เป็น)? {0,2}"
    r"([0-9]{3,8})(?![0-9a-z]|[.,:/-][0-9])",
    re.ASCII,
)
_ABROAD = pattern(
    f"(?:{'|'.join(words.lines('secrets.abroad_names', 'en'))})"
    r"[^\s:=!-~]{0,12}(?: [^\s:=!-~]{1,12}){0,3}"
    r" {0,2}(?P<sign>[:=]|-{1,2}>?|→|是|为|為)?[ \"'`]{0,3}"
    r"(?P<value>[!-~]{4,64})"
)
_PIN_LENGTHS = {"pin": (4, 6), "cvv": (3, 4), "cvc": (3, 4)}
# Not a value: placeholders, masks, code, addresses, algorithms, sizes, measurements.
_NO_VALUE = pattern(
    r"\[.*\]|<.*>|\{.*\}|\$\{?\w+\}?|%\w+%?|[*•.x_#?-]{3,}|[a-z_][\w.]*[(\[].*|[a-z_]+(?:\.[a-z_]+)+"
    r"|https?://.*|[\w.+-]+@[\w-]+\.[a-z.]{2,}|[~.]?/[^/]*/.*|sha-?\d+\S*|md5|oauth2?\S*|[23]fa"
    r"|base(?:32|58|64)|utf-?\d+|argon2\w*|pbkdf2\S*|aes-?\d+\S*|rsa-?\d+|tls\S*|wpa[23]\S*|1password|auth0"
    r"|v\d[\d.]*|\d{1,3}-[a-z]+|\d+(?:st|nd|rd|th)|\d{1,3}\+?"
    r"|-?\d(?:\.\d+e[+-]?|e[+-])\d{1,3}",
    re.ASCII | re.IGNORECASE,
)
_WORD = pattern(r"[A-Za-z][a-z']*(?:-[a-z]+)?|[A-Z]+")
_DESCRIBES = pattern(r".{3,}(?:ed|ing|ly|able|ible|ive|ful|less|ous|ent|ant)")
_UNIT = pattern(
    r" ?(?:char|digit|letter|symbol|word|day|week|month|year|hour|minute|time|user"
    r"|ตัว|หลัก|วัน|เดือน|ปี|ครั้ง|คน|นาที)"
)
_SEEDS = (12, 15, 18, 21, 24)  # words of a wallet's phrase, some of which are also grammar
_ENDS = ("and", "but", "for", "on", "so", "btw", "please", "or")
_REST = pattern(r"[^\n.,;!?()]{0,160}")
_REQUESTS = words.listed("secrets.requests")
_STATES = words.listed("secrets.states") | _REQUESTS


def logins(plain: str, _low: str) -> Iterator[Span]:
    """Passwords within an address, as in `https://user:password@host`."""
    found = ((m, m.lastindex or 1) for m in _LOGIN.finditer(plain))
    yield from (("password", *m.span(group)) for m, group in found if _is_value(m[group]))


def bearers(plain: str, low: str) -> Iterator[Span]:
    """Tokens behind `Bearer` or `Authorization: Basic`."""
    for m in _BEARER.finditer(low):
        is_header = "basic" in m[0][:24]
        if is_header or any(c.isdigit() for c in m[1]) or is_random(plain[slice(*m.span(1))]):
            yield "bearer_token", *m.span(1)


def abroad(plain: str, low: str) -> Iterator[Span]:
    """Passwords behind their names in Chinese, Japanese, Korean, Russian, Arabic and Hindi.

    The value is Latin letters, digits and signs; without a sign before it, it has a digit.
    """
    for m in _ABROAD.finditer(low):
        start, end = m.span("value")
        end -= len(m["value"]) - len(m["value"].rstrip(".,;:)]}>*?!"))
        value = plain[start:end]
        told = m["sign"] or any(c.isdigit() for c in value)
        if told and len(value) >= 4 and _is_value(value) and not _UNIT.match(low, end):
            yield "password", start, end


def pins(_plain: str, low: str) -> Iterator[Span]:
    """PINs, one-time codes and the like behind their names."""
    for m in _PIN.finditer(low):
        postal = m[1] == "pin" and "code" in (m[2] or "") and len(m[3]) == 6
        if len(m[3]) in _PIN_LENGTHS.get(m[1][:3], (4, 5, 6, 7, 8)) and not postal:
            yield "pin", *m.span(3)


def named(plain: str, low: str) -> Iterator[Span]:
    """Passwords, keys and tokens beside their names."""
    for m in _NAME.finditer(low):
        family = _FAMILY[(m.lastindex or 1) - 1]
        if family == "code" and not _ACCOUNT.search(low, max(0, m.start() - 40), m.start()):
            continue
        before = _before(plain, low, m.start()) if family == "password" else None
        for span in (before, _after(plain, low, m.end(), family)):
            if span is not None:
                yield _WHAT.get(family, family), *span


def under(key: str, text: str) -> str | None:
    """What a whole text is when the key it stands under names a secret; None if that is none."""
    m = _NAME.search(key)
    if m is None or key[m.end() :].strip("0123456789_ "):
        return None
    family = _FAMILY[(m.lastindex or 1) - 1]
    return _WHAT.get(family, family) if _fits(text, "", family, "equals") else None


def _after(plain: str, low: str, place: int, family: str) -> tuple[int, int] | None:
    """The value that follows a name: after a sign, after a verb, at once, or after "for the …" and these."""
    if family == "login":
        m = _PAIR.match(low, place)
        return _value(plain, low, m.end(), family, "beside") if m else None
    for how, join in (("equals", _EQUALS), ("is", _IS), ("to", _TO), ("beside", _BESIDE)):
        m = join.match(low, place)
        glued = m is not None and plain[m.end() - 1] == "="
        span = _value(plain, low, m.end(), family, "assigned" if glued else how) if m else None
        if span is not None:
            return span
    of = _OF.match(low, place)
    m = (_EQUALS.match(low, of.end()) or _IS.match(low, of.end())) if of else None
    return _value(plain, low, m.end(), family, "is") if m else None


def _before(plain: str, low: str, place: int) -> tuple[int, int] | None:
    """The value of "… is my password"."""
    m = _BEFORE.search(low[max(0, place - 100) : place])
    if m is None:
        return None
    start, end = (max(0, place - 100) + edge for edge in m.span(1))
    return (start, end) if _is_value(plain[start:end]) and _is_mixed(plain[start:end]) else None


def _value(plain: str, low: str, place: int, family: str, how: str) -> tuple[int, int] | None:
    m = _VALUE.match(plain, place)
    if m is None or _NO_VALUE.fullmatch(m[0]):
        return None
    if plain[m.end() : m.end() + 3] == " / " and family == "password":  # a name, then its password
        return _value(plain, low, m.end() + 3, family, how)
    start, end = m.span(m.lastgroup or 0)
    if m.lastgroup == "bare":
        start += len(m[0]) - len(m[0].lstrip("([{<*_"))
        end -= len(m[0]) - len(m[0].rstrip(".,;:)]}>*?"))
    rest = _REST.match(low, end)
    after = rest[0] if rest else ""
    if _is_phrase(plain[start:end].lower(), after, family, how):
        return start, end + len(after.rstrip())
    return (start, end) if start < end and _fits(plain[start:end], after, family, how) else None


def _fits(value: str, after: str, family: str, how: str) -> bool:
    """Whether a value is a secret of its family rather than a word about it."""
    if not _is_value(value):
        return False
    if value.isdigit():
        year = how == "beside" and len(value) == 4 and value[:2] in ("19", "20")
        sure = family == "password" or (family in _KEYS and how in ("assigned", "equals"))
        return sure and len(value) >= 4 and not year and not _UNIT.match(after)
    if family in ("pass", "code", "login"):
        return len(value) >= 6 and _is_mixed(value)
    if family not in ("password", "phrase"):
        signed = how in ("assigned", "equals")
        whole = signed and family in _KEYS and len(value) >= 8 and not after.strip()
        return whole or (len(value) >= (6 if signed else 8) and _is_mixed(value))
    if not _WORD.fullmatch(value):
        return len(value) >= 4 and (how in ("assigned", "equals", "is") or _is_mixed(value))
    ended = not after.strip() or after.split(maxsplit=1)[0] in _ENDS
    return how == "assigned" or (how in ("equals", "is") and ended)


def _is_phrase(first: str, after: str, family: str, how: str) -> bool:
    """Whether several plain words in a row are the secret: no grammar, no request among them."""
    told = how == "equals" or (how == "is" and family == "phrase")
    count = 1 + len(after.split())
    if told and family == "phrase" and count in _SEEDS and f"{first}{after}".replace(" ", "").isalpha():
        return True
    return (
        told
        and family in ("password", "phrase")
        and len(after.split()) >= 2
        and first.isalpha()
        and first not in STOP_WORDS
        and first not in _REQUESTS
        and not any(word in STOP_WORDS for word in after.split())
    )


def _is_value(value: str) -> bool:
    """Whether something can be a secret's value at all."""
    word = value.lower().rstrip("!").replace("'", "")
    if (
        len(value.replace(TAKEN, "")) < 3
        or word in STOP_WORDS
        or word in _STATES
        or _NO_VALUE.fullmatch(value)
    ):
        return False
    return not (_WORD.fullmatch(value) and ("-" in value or _DESCRIBES.fullmatch(word)))


def _is_mixed(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
