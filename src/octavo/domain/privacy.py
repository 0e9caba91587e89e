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

Invisible characters, full-width letters, digits of other scripts and look-alike letters hide nothing;
letters set apart by spaces do.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from octavo.domain.patterns import pattern
from octavo.domain.policy import PrivacyPolicy
from octavo.domain.text import STOP_WORDS, fold
from octavo.errors import BadInput

# Every name a finding can have; where two overlap, the earlier one names the whole.
NAMES = (
    "private_key", "jwt", "aws_key", "github_token", "slack_token", "openai_key", "google_key", "stripe_key",
    "card", "iban", "thai_id", "ssn", "bearer_token", "password", "pin", "api_key", "secret", "token",
    "email", "phone",
)  # fmt: skip
MAX_DEPTH = 64

Span = tuple[str, int, int]

# A placeholder is read as a blank that is neither a name nor a value, so masking twice is masking once.
_PLACEHOLDER = pattern(rf"\[(?:{'|'.join(NAMES)})\]")
_TAKEN = "\uffff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found and where it stands; `path` says in which string of nested data."""

    what: str
    start: int
    end: int
    path: str = ""


def find(text: str, policy: PrivacyPolicy) -> tuple[Finding, ...]:
    """The secrets and the personal data of a text, in order, none overlapping another."""
    plain, places = _plain(text)
    if "[" in plain:
        plain = _PLACEHOLDER.sub(lambda m: _TAKEN * len(m[0]), plain)
    spans = _spans(plain, policy)
    if not spans:
        return ()
    spans = _merged(spans)
    if places is not None:
        spans = [(what, places[start], places[end - 1] + 1) for what, start, end in spans]
    return tuple(Finding(what=what, start=start, end=end) for what, start, end in spans)


def mask(text: str, findings: Iterable[Finding]) -> str:
    """The text with a typed placeholder in place of each finding."""
    parts, done = [], 0
    for finding in sorted(findings, key=lambda f: (f.start, -f.end)):
        if finding.start >= done:
            parts += [text[done : finding.start], f"[{finding.what}]"]
        done = max(done, finding.end)
    return "".join((*parts, text[done:]))


def masked(text: str, policy: PrivacyPolicy) -> str:
    """The text without its secrets; what a mask brings to light is masked too."""
    for _ in range(4):
        findings = find(text, policy)
        if not findings:
            break
        text = mask(text, findings)
    return text


def find_data(data: Any, policy: PrivacyPolicy) -> tuple[Finding, ...]:
    """The findings in every string, number and key of nested data; a key can give its value away."""
    found: list[Finding] = []
    _walk(data, policy, "", "", found)
    return tuple(found)


def mask_data(data: Any, policy: PrivacyPolicy) -> Any:
    """The same data with every finding masked."""
    return _walk(data, policy, "", "", [])


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
_NO_DIGITS = bytes(i for i in range(256) if chr(i) not in "0123456789")
_NAME_STEMS = (
    "pass", "pw", "secret", "key", "token", "phrase", "mnemonic", "signature", "login", "log in",
    "logged in", "cred", "wort", "contrase", "senha",
)  # fmt: skip
_THAI_NAME_STEMS = ("รหัส", "พาส", "โทเค", "คีย์", "ล็อกอิน")
_PIN_STEMS = ("pin", "otp", "cvv", "cvc", " code")


def _spans(plain: str, policy: PrivacyPolicy) -> list[Span]:
    """What each detector finds, behind its pre-filter: nearly every text is looked at by none."""
    found: list[Span] = []
    low, data = plain.lower(), plain.encode(errors="replace")
    if "://" in plain:
        found += (("password", *m.span(1)) for m in _LOGIN.finditer(plain) if _is_value(m[1]))
    if _SIXTEEN in data.translate(_TOKEN_CHARACTERS) or "-----BEGIN" in plain:
        found += _tokens(plain)
    if len(data.translate(None, _NO_DIGITS)) >= 9:
        found += _numbers(plain, low)
    if "bearer" in low or "basic" in low:
        found += _bearers(plain, low)
    if _holds(low, _PIN_STEMS):
        found += _pins(low)
    if _holds(low, _NAME_STEMS) or (len(data) > len(plain) and _holds(low, _THAI_NAME_STEMS)):
        found += _named(plain, low)
    if policy.email != "allow" and "@" in plain:
        found += (("email", *m.span()) for m in _EMAIL.finditer(plain))
    if policy.phone != "allow":
        found += (("phone", *m.span()) for m in _PHONE.finditer(plain))
    return found


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


# Tokens known by their make.
_MAKE = pattern(
    r"(?<![\w-])(?:"
    r"(?P<aws_key>A(?:KIA|SIA|GPA|IDA|ROA|NPA|NVA|BIA|CCA)[A-Z0-9]{16}(?![A-Za-z0-9]))"
    r"|(?P<github_token>gh[pousr]_[A-Za-z0-9]{20,255}+|github_pat_\w{20,255}+)"
    r"|(?P<slack_token>xox[abeoprs](?:\.xox[bp])?-[\w-]{10,255}+|xapp-[\w-]{10,255}+"
    r"|hooks\.slack\.com/services/T\w{5,20}/B\w{5,20}/\w{10,40})"
    r"|(?P<openai_key>sk-(?=[\w-]{0,255}[0-9])[\w-]{16,255}+)"
    r"|(?P<google_key>AIza[\w-]{30,60}+|ya29\.[\w.-]{20,512}+|GOCSPX-[\w-]{20,60}+)"
    r"|(?P<stripe_key>[prs]k_(?:live|test)_[A-Za-z0-9]{10,255}+|whsec_[\w+/=]{20,255}+)"
    r"|(?P<jwt>eyJ[\w-]{8,4096}+\.eyJ[\w-]{4,8192}+\.[\w-]{0,2048}+)"
    r"|(?P<token>(?:glpat-|npm_|hf_|pypi-|dop_v1_|shpat_|SG\.|AGE-SECRET-KEY-1|[0-9]{8,10}:AA)[\w.-]{20,512}+)"
    r")",
    re.ASCII,
)
_BLOCK = pattern(r"-----BEGIN (?:[A-Z0-9 ]{0,40}(PRIVATE KEY))?[A-Z0-9 ]{0,60}-----")
_LOGIN = pattern(r"://[^\s/:@]{0,64}:([^\s/@]{1,128})@")
_RUN = pattern(r"[A-Za-z0-9_+/-]{20,}+={0,2}")
_PIECE = pattern(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9]")
# Runs that name things: hex, ULIDs, digests with their algorithm, public keys, chain addresses.
_PUBLIC = pattern(
    r"(?:0x)?[0-9a-fA-F-]+|[0-7][0-9A-HJKMNP-TV-Z]{25}|sha[0-9]{1,3}-.*|AAAA[BCE]3Nza.*"
    r"|[13][1-9A-HJ-NP-Za-km-z]{25,33}"
)


def _tokens(plain: str) -> Iterator[Span]:
    yield from ((m.lastgroup or "token", *m.span()) for m in _MAKE.finditer(plain))
    block_end = 0
    for m in _BLOCK.finditer(plain):
        if m.start() >= block_end:
            block_end = _block_end(plain, m.end())
            if m[1]:
                yield "private_key", m.start(), block_end
    for m in _RUN.finditer(plain):
        if _is_random(m[0]) and not _in_address(plain, m.start()) and not _in_block(plain, m.start()):
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


def _is_random(run: str) -> bool:
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


_DIGITS = pattern(r"[0-9]+")
_SSN_NAMED = pattern(
    r"(?:ssn|social security)[a-z#: =.]{0,16}([0-9]{3}[-. ]?[0-9]{2}[-. ]?[0-9]{4})(?![0-9])"
)
_THAI_ID_NAMED = pattern(r"บัตร|ประจำตัว|ปชช|ปปช|national id|citizen|id card|thai id|id number")
_CARD = pattern(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})|(?:5[1-5]|2[2-7])[0-9]{14}|3[47][0-9]{13}|35[0-9]{14}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|6(?:011|5[0-9]{2}|4[4-9][0-9])[0-9]{12}|62[0-9]{14,17}"
)
_IBAN = pattern(r"(?<![a-z0-9])[a-z]{2}[0-9]{2}(?: ?[a-z0-9]){11,30}+")
_IBANS = (
    "ad24 ae23 al28 at20 az28 ba20 be16 bg22 bh22 br29 by28 ch21 cr22 cy28 cz24 de22 dk18 do28 ee20 eg29 "
    "es24 fi18 fo18 fr27 gb22 ge22 gi23 gl18 gr27 gt28 hr21 hu28 ie22 il23 iq23 is26 it27 jo30 kw30 kz20 "
    "lb28 lc32 li21 lt20 lu20 lv21 ly25 ma28 mc27 md24 me22 mk19 mr27 mt31 mu30 nl18 no15 pk24 pl28 ps29 "
    "pt25 qa29 ro24 rs22 sa24 sc31 se24 si19 sk24 sm27 st25 sv28 tl23 tn24 tr26 ua29 va22 vg24 xk20"
)
_IBAN_LENGTHS = {pair[:2]: int(pair[2:]) for pair in _IBANS.split()}
_PHONE = pattern(
    r"(?<![\w+./-])(?:\+[0-9](?:[ ().-]{0,2}[0-9]){7,14}|0[0-9]{1,2}[ -]?[0-9]{3}[ -]?[0-9]{3,4}"
    r"|0[0-9]{3,4} [0-9]{3,4} ?[0-9]{3,4}|0[0-9]{2} [0-9]{4} [0-9]{4}"
    r"|(?:1[ .-])?(?:\([0-9]{3}\) ?|[0-9]{3}[.-])[0-9]{3}[ .-][0-9]{4})(?![\w/-]|\.[0-9])",
    re.ASCII,
)
_EMAIL = pattern(r"(?<![\w.+-])[\w.+-]{1,64}+@[\w-]{1,63}+(?:\.[\w-]{1,63}+){1,8}", re.ASCII)


def _numbers(plain: str, low: str) -> Iterator[Span]:
    """Cards, IBANs and ids; groups of digits joined by single spaces or dashes are read as one."""
    yield from (("ssn", *m.span(1)) for m in _SSN_NAMED.finditer(low) if _is_ssn(m[1]))
    for m in _IBAN.finditer(low):
        length = _iban_length(low, *m.span())
        if length:
            yield "iban", m.start(), m.start() + length
    chain: list[tuple[int, int]] = []
    for m in _DIGITS.finditer(plain):
        if chain and not (m.start() == chain[-1][1] + 1 and plain[chain[-1][1]] in " -"):
            yield from _of_chain(plain, low, chain)
            chain = []
        chain.append(m.span())
    yield from _of_chain(plain, low, chain)


def _of_chain(plain: str, low: str, chain: Sequence[tuple[int, int]]) -> Iterator[Span]:
    for i, (start, _) in enumerate(chain):
        digits = ""
        shape: list[int] = []
        for first, end in chain[i : i + 19]:
            if len(digits) + end - first > 19 or (shape and plain[first - 1] != plain[start + shape[0]]):
                break
            digits += plain[first:end]
            shape.append(end - first)
            what = _of_digits(low, digits, shape, start) if len(digits) >= 9 else None
            if what and _stands_alone(plain, start, end):
                yield what, start, end


def _of_digits(low: str, digits: str, shape: list[int], start: int) -> str | None:
    if shape == [3, 2, 4]:
        beside = low[max(0, start - 2) : start] + low[start + 11 : start + 13]
        listed = low[start + 3] == " " and any(c.isdigit() for c in beside)
        return "ssn" if _is_ssn(digits) and not listed else None
    if shape in ([13], [1, 4, 5, 2, 1]) and _is_thai_id(digits):
        as_time, as_barcode = "15" <= digits[:2] <= "18", digits[:3] == "885" and _is_ean(digits)
        doubtful = shape == [13] and (as_time or as_barcode)
        if not doubtful or _THAI_ID_NAMED.search(low, max(0, start - 60), start):
            return "thai_id"
    return "card" if _CARD.fullmatch(digits) and _is_luhn(digits) else None


def _stands_alone(plain: str, start: int, end: int) -> bool:
    """Whether digits are a number of their own: no letter, decimal point or longer code around them."""
    before, after = plain[start - 1 : start] if start else "", plain[end : end + 2]
    inside = (before.isascii() and before.isalnum()) or before in tuple("_-.")
    goes_on = (after[:1].isascii() and after[:1].isalnum()) or after[:1] in tuple("_-")
    return not inside and not goes_on and not (after[:1] == "." and after[1:].isdigit())


def _is_ssn(number: str) -> bool:
    digits = "".join(c for c in number if c.isdigit())
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"


def _is_luhn(digits: str) -> bool:
    doubled = (int(d) * 2 for d in digits[-2::-2])
    return (sum(map(int, digits[::-2])) + sum(d - 9 * (d > 9) for d in doubled)) % 10 == 0


def _is_thai_id(digits: str) -> bool:
    weighted = sum(int(d) * (13 - i) for i, d in enumerate(digits[:12]))
    return digits[0] in "12345678" and (11 - weighted % 11) % 10 == int(digits[12])


def _is_ean(digits: str) -> bool:
    return sum(int(d) * (3 if i % 2 else 1) for i, d in enumerate(digits)) % 10 == 0


def _iban_length(low: str, start: int, stop: int) -> int:
    """How many characters of the text are an IBAN with its country's length and its checksum, or 0."""
    wanted = _IBAN_LENGTHS.get(low[start : start + 2], 0)
    taken, end = "", start
    while end < stop and len(taken) < wanted:
        taken += low[end].strip()
        end += 1
    if not wanted or len(taken) < wanted or low[end : end + 1].isalnum():
        return 0
    return end - start if int("".join(str(int(c, 36)) for c in taken[4:] + taken[:4])) % 97 == 1 else 0


# The names of secrets by family, which says what may follow. Each alternative starts with a plain letter and
# ends in an empty group: the first makes the search several times as fast, the second tells the family.
_LOCKED = (
    r"wi-?fi|ไวไฟ|(?:บัตร ?)?(?:atm|เอทีเอ็ม)|ลับ|ล็อกอิน|login|เข้าเครื่อง|เข้าระบบ|โทรศัพท์|มือถือ|ปลดล็อก"
    r"|ตู้เซฟ|ประตู|e?mail|เมล|เฟซ|ไลน์|ไอจี|facebook|fb|line|ig|gmail|netflix|icloud|apple id|google|steam"
)
_FAMILIES = {
    "password": (
        r"pass ?wor[dt](?<!1password)", r"passwd", r"passcode", r"pswd",
        r"pwd?(?![a-z])(?<![a-z0-9]pw)(?<![a-z0-9]pwd)", r"user(?:name)? ?/ ?pass", r"login ?/ ?pass",
        r"sshpass -p", r"kennwort", r"contrase[ñn]a", r"senha", r"mot de passe", r"รหัสผ่าน", r"พาสเวิร?์?ด",
        r"พาสโค้ด", rf"รหัส ?(?:{_LOCKED})", rf"พาส ?(?:{_LOCKED})",
    ),
    "pass": (r"pass(?= ?[:=]| is )(?<![a-z-]pass)(?<!(?:ing|son|ski|bus|ail|day|ain) pass)",),
    "code": (r"รหัส(?= )",),
    "login": (r"creds", r"credentials", r"log(?:ged)? ?in(?![a-z])", r"ล็อกอิน"),
    "phrase": (r"seed phrase", r"recovery phrase", r"secret phrase", r"passphrase", r"mnemonic(?: phrase)?"),
    "api_key": (r"api[ _-]?(?:key|token|secret)", r"คีย์ ?api"),
    "secret": (
        r"secret[ _-]?(?:access[ _-]?)?key", r"private[ _-]?key", r"encryption[ _-]?key", r"signing[ _-]?key",
        r"master[ _-]?key", r"account[ _-]?key", r"access[ _-]?key", r"client[ _-]?secret",
        r"app[ _-]?secret", r"shared[ _-]?secret", r"webhook[ _-]?secret", r"consumer[ _-]?secret",
        r"secret(?![a-z])(?<![a-z]secret)",
    ),
    "token": (r"token(?![a-z])", r"โทเค็?น", r"signature(?==)"),
}  # fmt: skip
_NAME = pattern("|".join(f"{name}()" for names in _FAMILIES.values() for name in names))
_FAMILY = [family for family, names in _FAMILIES.items() for _ in names]
_WHAT = {"phrase": "password", "pass": "password", "code": "password", "login": "password"}
_CLOSED = r"""[0-9]?[\\"'`*\])]{0,3}(?: \([^()\n]{1,30}\))?"""
_EQUALS = pattern(_CLOSED + r"[ \t]{0,4}(?::=|=>|->|==?|:|>)[*_]{0,2}[ \t]{0,4}\n?[ \t]{0,4}")
_IS = pattern(
    _CLOSED + r"(?:(?: {1,3}(?:is|was|will be|would be|should be|used to be|ist|es|est)|'s"
    r"|[?.]? (?:it|that)(?:'?s| is))"
    r"(?: now| still| currently| just)?:? | {0,2}(?:คือ|เป็น|ว่า)[ :]{0,2})"
)
_TO = pattern(_CLOSED + r" (?:(?:has been|was|is|got) )?(?:(?:changed|set|reset|updated) )?to ")
_BESIDE = pattern(
    _CLOSED + r" {1,3}(?:- {1,2})?"
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
_BEARER = pattern(
    r"(?:bearer(?<![\w-]bearer)|authorization:? {0,2}basic)[ :=]{1,3}(?:token[ :=]{1,3}(?:is )?)?"
    r"([\w.~+/=-]{6,4096}+)",
    re.ASCII,
)
_PIN = pattern(
    r"(pin(?<![\w-]pin)|otp(?<![\w-]otp)|cvv2?|cvc2?"
    r"|(?:door|gate|alarm|entry|lock|safe|verification|security|unlock|sms|2fa)(?= code))"
    r"( ?code| number| no)?"
    r"(?: (?:for|of|to|on) [^\n.:;!?=]{1,30}?| ?ของ[ก-๏]{1,12})?(?: is| was| ?:| ?=| ?คือ| ?เป็น)? {0,2}"
    r"([0-9]{3,8})(?![0-9]|[.,:/-][0-9])",
    re.ASCII,
)
_PIN_LENGTHS = {"pin": (4, 6), "cvv": (3, 4), "cvc": (3, 4)}
# Not a value: placeholders, masks, code, addresses, algorithms, sizes.
_NO_VALUE = pattern(
    r"\[.*\]|<.*>|\{.*\}|\$\{?\w+\}?|%\w+%?|[*•.x_#?-]{3,}|[a-z_][\w.]*[(\[].*|[a-z_]+(?:\.[a-z_]+)+"
    r"|https?://.*|[\w.+-]+@[\w-]+\.[a-z.]{2,}|[~.]?/[^/]*/.*|sha-?\d+\S*|md5|oauth2?\S*|[23]fa"
    r"|base(?:32|58|64)|utf-?\d+|argon2\w*|pbkdf2\S*|aes-?\d+\S*|rsa-?\d+|tls\S*|wpa[23]\S*|1password|auth0"
    r"|v\d[\d.]*|\d{1,3}-[a-z]+|\d+(?:st|nd|rd|th)|\d{1,3}\+?",
    re.ASCII | re.IGNORECASE,
)
_WORD = pattern(r"[A-Za-z][a-z']*(?:-[a-z]+)?|[A-Z]+")
_DESCRIBES = pattern(r".{3,}(?:ed|ing|ly|able|ible|ive|ful|less|ous|ent|ant)")
_UNIT = pattern(
    r" ?(?:char|digit|letter|symbol|word|day|week|month|year|hour|minute|time|user"
    r"|ตัว|หลัก|วัน|เดือน|ปี|ครั้ง|คน|นาที)"
)
_ENDS = ("and", "but", "for", "on", "so", "btw", "please", "or")
_REST = pattern(r"[^\n.,;!?()]{0,160}")
_STATES_TEXT = """
    required optional mandatory needed necessary wrong incorrect invalid valid correct right weak strong
    stronger secure insecure safe long short longer shorter good bad great fine ok okay empty blank null none
    nil true false unset default secret private public unknown easy hard simple complex unique temporary
    permanent same broken stolen lost forgotten gone ready random string str text int number bool boolean
    varchar password passwd pwd username user users email name login value field hash bcrypt plaintext
    cleartext via per tbd todo redacted confidential yes never always minimum maximum min max least digits
    letters characters one two three something anything nothing everything important essential case known
    due overdue set managers manager rotation policy rules tips help prompt screen page link written kept
    sent hidden shown given taken chosen held made built
"""
_REQUESTS_TEXT = "see ask use enter type contact check click please reset change write keep"
_REQUESTS = frozenset(_REQUESTS_TEXT.split())
_STATES = frozenset(_STATES_TEXT.split()) | _REQUESTS


def _bearers(plain: str, low: str) -> Iterator[Span]:
    for m in _BEARER.finditer(low):
        if any(c.isdigit() for c in m[1]) or _is_random(plain[slice(*m.span(1))]):
            yield "bearer_token", *m.span(1)


def _pins(low: str) -> Iterator[Span]:
    for m in _PIN.finditer(low):
        postal = m[1] == "pin" and "code" in (m[2] or "") and len(m[3]) == 6
        if len(m[3]) in _PIN_LENGTHS.get(m[1][:3], (4, 5, 6, 7, 8)) and not postal:
            yield "pin", *m.span(3)


def _named(plain: str, low: str) -> Iterator[Span]:
    for m in _NAME.finditer(low):
        family = _FAMILY[(m.lastindex or 1) - 1]
        if family == "code" and not _ACCOUNT.search(low, max(0, m.start() - 40), m.start()):
            continue
        before = _before(plain, low, m.start()) if family == "password" else None
        for span in (before, _after(plain, low, m.end(), family)):
            if span is not None:
                yield _WHAT.get(family, family), *span


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
        return family == "password" and len(value) >= 4 and not year and not _UNIT.match(after)
    if family in ("pass", "code", "login"):
        return len(value) >= 6 and _is_mixed(value)
    if family not in ("password", "phrase"):
        signed = how in ("assigned", "equals")
        whole = signed and family == "api_key" and len(value) >= 8 and not after.strip()
        return whole or (len(value) >= (6 if signed else 8) and _is_mixed(value))
    if not _WORD.fullmatch(value):
        return len(value) >= 4 and (how in ("assigned", "equals", "is") or _is_mixed(value))
    ended = not after.strip() or after.split(maxsplit=1)[0] in _ENDS
    return how == "assigned" or (how in ("equals", "is") and ended)


def _is_phrase(first: str, after: str, family: str, how: str) -> bool:
    """Whether several plain words in a row are the secret: no grammar, no request among them."""
    told = how == "equals" or (how == "is" and family == "phrase")
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
        len(value.replace(_TAKEN, "")) < 3
        or word in STOP_WORDS
        or word in _STATES
        or _NO_VALUE.fullmatch(value)
    ):
        return False
    return not (_WORD.fullmatch(value) and ("-" in value or _DESCRIBES.fullmatch(word)))


def _is_mixed(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _walk(data: Any, policy: PrivacyPolicy, key: str, path: str, found: list[Finding], depth: int = 0) -> Any:
    """Collect the findings of nested data and return it masked."""
    if depth > MAX_DEPTH:
        raise BadInput(f"data is nested deeper than {MAX_DEPTH} at {path[:80]!r}", hint="flatten the data")
    match data:
        case str():
            return _walk_text(data, policy, key, path, found)
        case int() if not isinstance(data, bool):
            text = _walk_text(str(data), policy, key, path, found)
            return data if text == str(data) else text
        case Mapping():
            return _walk_mapping(data, policy, path, found, depth)
        case list() | tuple():
            items = [_walk(v, policy, key, f"{path}[{i}]", found, depth + 1) for i, v in enumerate(data)]
            return items if isinstance(data, list) else tuple(items)
    return data


def _walk_mapping(
    data: Mapping[Any, Any], policy: PrivacyPolicy, path: str, found: list[Finding], depth: int
) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for key, value in data.items():
        name = _walk_text(key, policy, "", path, found) if isinstance(key, str) else key
        inner = f"{path}.{name}" if path else str(name)
        while name in result:  # two keys that mask to one must not cost a value
            name = f"{name}'"
        result[name] = _walk(value, policy, str(key), inner, found, depth + 1)
    return result


def _walk_text(text: str, policy: PrivacyPolicy, key: str, path: str, found: list[Finding]) -> str:
    findings = find(text, policy) or _by_key(key, text)
    found += (replace(finding, path=path) for finding in findings)
    return masked(mask(text, findings), policy) if findings else text


def _by_key(key: str, text: str) -> tuple[Finding, ...]:
    """The whole text, when the key it stands under names a secret."""
    m = _NAME.search(_plain(key)[0].lower()) if key else None
    if m is None or m.string[m.end() :].strip("0123456789_ "):
        return ()
    family = _FAMILY[(m.lastindex or 1) - 1]
    what = _WHAT.get(family, family)
    return (Finding(what=what, start=0, end=len(text)),) if _fits(text, "", family, "equals") else ()
