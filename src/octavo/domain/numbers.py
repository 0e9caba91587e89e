"""Numbers that name a person or an account: cards, IBANs, Thai bank accounts, national ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from octavo.domain.patterns import pattern
from octavo.domain.tokens import Span

_DIGITS = pattern(r"[0-9]+")
_SSN_NAMED = pattern(
    r"(?:ssn|social security)[a-z#: =.]{0,16}([0-9]{3}[-. ]?[0-9]{2}[-. ]?[0-9]{4})(?![0-9])"
)
_THAI_ID_NAMED = pattern(r"บัตร|ประจำตัว|ปชช|ปปช|national id|citizen|id card|thai id|id number")
# What stands before a Thai bank account, or behind it, and what tells that a number is another.
_ACCOUNT = pattern(
    r"(?P<account>บัญชี|ธนาคาร|กสิกร|ไทยพาณิชย์|กรุงไทย|กรุงศรี|ออมสิน|พร้อมเพย์|โอน|\b(?:bank|account|acct|a/c|kbank|scb|ktb|bbl|ttb|transfer)\b)"
    r"|ออเดอร์|คำสั่งซื้อ|พัสดุ|ใบเสร็จ|ใบแจ้ง|โทร|เบอร์|มือถือ|\b(?:order|invoice|tracking|parcel|receipt|tel|phone|call|mobile|ticket)\b"
)
_ACCOUNT_NAMED = pattern(r"(?:(?:เลข(?:ที่)?บัญชี|(?:account|acct|a/c) (?:number|no\.?|#))[^0-9]{0,24})\Z")
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


def numbers(plain: str, low: str) -> Iterator[Span]:
    """Cards, IBANs and ids; groups of digits joined by single spaces or dashes are read as one."""
    yield from (("ssn", *m.span(1)) for m in _SSN_NAMED.finditer(low) if _is_ssn(m[1]))
    for m in _IBAN.finditer(low):
        length = _iban_length(low, *m.span())
        if length:
            yield "iban", m.start(), m.start() + length
    chain: list[tuple[int, int]] = []
    for m in _DIGITS.finditer(plain):
        if chain and not (m.start() == chain[-1][1] + 1 and plain[chain[-1][1]] in " -."):
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
    if (shape == [3, 1, 5, 1] and _is_of_account(low, start)) or (
        shape in ([10], [12]) and _ACCOUNT_NAMED.search(low, max(0, start - 48), start)
    ):
        return "bank_account"
    is_decimal = len(shape) == 2 and low[start + shape[0]] == "."  # 442928.5390005561 is a measurement
    return "card" if not is_decimal and _CARD.fullmatch(digits) and _is_luhn(digits) else None


def _is_of_account(low: str, start: int) -> bool:
    """Whether a number in the form of a Thai bank account stands beside a word for one."""
    before = [*_ACCOUNT.finditer(low, max(0, start - 40), start)]
    beside = before[-1] if before else _ACCOUNT.search(low, start + 13, start + 40)
    return beside is not None and beside["account"] is not None


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
    length = _IBAN_LENGTHS.get(low[start : start + 2], 0)
    taken, end = "", start
    while end < stop and len(taken) < length:
        taken += low[end].strip()
        end += 1
    if not length or len(taken) < length or low[end : end + 1].isalnum():
        return 0
    return end - start if int("".join(str(int(c, 36)) for c in taken[4:] + taken[:4])) % 97 == 1 else 0
