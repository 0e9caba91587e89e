"""Secrets and personal data are found where people write them, and only there."""

from __future__ import annotations

import json
import random
import re
import string
import sys
from itertools import pairwise
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]  # the only way to look inside a pattern
from typing import Any

import pytest
from detect_secrets.plugins import (
    aws,
    basic_auth,
    github_token,
    gitlab_token,
    high_entropy_strings,
    jwt,
    npm,
    openai,
    private_key,
    sendgrid,
    slack,
    stripe,
    telegram_token,
)
from hypothesis import given
from hypothesis import strategies as st

from octavo.domain import named_secrets, numbers, privacy, screening, tokens
from octavo.domain.patterns import Pattern
from octavo.domain.policy import PrivacyPolicy
from octavo.domain.privacy import NAMES, clean_data, find, is_suspect, mask, masked
from octavo.errors import BadInput

# "¦" keeps scanners of code hosts from taking the corpus's keys for real ones.
_LINES = (Path(__file__).parent / "corpora" / "privacy.jsonl").read_text(encoding="utf-8").replace("¦", "")
CORPUS: list[dict[str, Any]] = [json.loads(line) for line in _LINES.splitlines()]
TEXTS = [row["text"] for row in CORPUS]

ALLOW = PrivacyPolicy()
MASK = PrivacyPolicy(phone="mask", email="mask")
REFUSE = PrivacyPolicy(phone="refuse", email="refuse")


def found(text: str, policy: PrivacyPolicy = ALLOW) -> list[tuple[str, str]]:
    return [(what, text[start:end]) for what, start, end in find(text, policy)]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("My SSN is 123-45-6789", "ssn"),
        ("password: hunter2", "password"),
        ("api_key: sk-abc123", "api_key"),
        ("Authorization: Bearer abc123def456", "bearer_token"),
        ("PASSWORD: hunter2", "password"),
        ("รหัสผ่านคือ hunter2", "password"),
    ],
)
def test_what_the_vault_must_block_is_found(text: str, what: str) -> None:
    assert [name for name, _ in found(text)] == [what]


@pytest.mark.parametrize(
    "text",
    [
        "Favorite editor is VS Code", "likes pizza", "the password is required", "forgot my password",
        "He is the flag-bearer", "order 123456789", "at 1712345678", "ts 1712345678901", "ลืมรหัสผ่าน",
    ],
)  # fmt: skip
def test_what_the_vault_must_allow_is_clean(text: str) -> None:
    assert find(text, REFUSE) == ()


@pytest.mark.parametrize("name", ["pin", "otp", "cvv", "cvc", "cvv2"])
def test_what_chance_spells_within_an_id_is_no_name_of_a_secret(name: str) -> None:
    assert find(f"01md9{name}5973bqhwjqzh", ALLOW) == find(f"{name}5973bqhwjqzh", ALLOW) == ()
    assert found(f"01md9 {name} 5973") == [("pin", "5973")]


@given(st.text("0123456789abcdefghjkmnpqrstvwxyz", min_size=20, max_size=20))
def test_an_id_is_no_secret(name: str) -> None:
    assert find(name, ALLOW) == ()


@pytest.mark.parametrize("number", ["8.903861109775694e-290", "1e-07", "-2.5e+20"])
def test_a_number_as_machines_write_it_is_no_secret_of_its_name(number: str) -> None:
    assert found(f'{{"TOKEN": {number}}}') == found(f"token: {number}") == []


def test_the_corpus_is_large_of_both_sorts_and_partly_thai() -> None:
    positives = [row for row in CORPUS if row["find"]]
    thai = [text for text in TEXTS if re.search("[ก-๛]", text)]
    assert len(CORPUS) >= 600
    assert len(positives) >= 250
    assert len(CORPUS) - len(positives) >= 350
    assert len(thai) >= 120
    assert {what for row in positives for what, _ in row["find"]} == set(NAMES) - {"phone", "email"}


def test_precision_and_recall_on_the_corpus_stay_above_their_floors() -> None:
    right = wrong = missed = 0
    for row in CORPUS:
        expected = {tuple(pair) for pair in row["find"]}
        actual = set(found(row["text"]))
        right += len(actual & expected)
        wrong += len(actual - expected)
        missed += len(expected - actual)
    assert right / (right + wrong) >= 0.99
    assert right / (right + missed) >= 0.99


@pytest.mark.parametrize(
    ("text", "what", "value"),
    [
        ("call +66 81 234 5678 now", "phone", "+66 81 234 5678"),
        ("โทร 081-234-5678 นะ", "phone", "081-234-5678"),
        ("โทร ๐๘๑-๒๓๔-๕๖๗๘ นะ", "phone", "๐๘๑-๒๓๔-๕๖๗๘"),
        ("เบอร์ 0812345678", "phone", "0812345678"),
        ("ออฟฟิศ 02-123-4567", "phone", "02-123-4567"),
        ("(555) 123-4567", "phone", "(555) 123-4567"),
        ("555-123-4567", "phone", "555-123-4567"),
        ("ring 07700 900123", "phone", "07700 900123"),
        ("020 7946 0958", "phone", "020 7946 0958"),
        ("mail anna.k+octavo@example.co.th, please", "email", "anna.k+octavo@example.co.th"),
        ("อีเมล somchai@example.com ครับ", "email", "somchai@example.com"),
    ],
)
def test_phones_and_e_mail_follow_the_policy(text: str, what: str, value: str) -> None:
    assert found(text) == []
    assert found(text, MASK) == [(what, value)]
    assert found(text, REFUSE) == [(what, value)]


@pytest.mark.parametrize(
    "text",
    ["at 1712345678", "v1.2.3", "ISBN 978-0-306-40615-7", "192.168.100.200", "123456789", "2024-01-15"],
)
def test_numbers_that_are_no_phones_stay_under_the_strictest_policy(text: str) -> None:
    assert find(text, REFUSE) == ()


@pytest.mark.parametrize(
    "hidden", ["\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u034f", "\u202e", "\0"]
)
def test_invisible_characters_hide_nothing_and_spans_cover_them(hidden: str) -> None:
    name, value = hidden.join("password"), hidden.join("hunter2")
    text = f"{hidden}my {name}: {value} ok"
    assert found(text) == [("password", value)]
    assert masked(text, ALLOW) == f"{hidden}my {name}: [password] ok"


def test_digits_of_any_script_are_digits() -> None:
    for zero in ("０", "๐", "٠", "०", "𝟎"):
        number = "".join(chr(ord(zero) + int(d)) if d.isdigit() else d for d in "123-45-6789")
        assert found(f"x {number} y") == [("ssn", number)]


def test_a_mask_names_what_it_hides_and_leaves_the_rest() -> None:
    text = "Anna: password is hunter2, card 4111 1111 1111 1111."
    assert masked(text, ALLOW) == "Anna: password is [password], card [card]."


def test_a_mask_takes_findings_in_any_order_and_overlapping() -> None:
    findings = [("card", 4, 8), ("token", 0, 6), ("pin", 9, 10)]
    assert mask("aaaabbbbcde", findings) == "[token]c[pin]e"


@pytest.mark.parametrize("text", TEXTS)
def test_masked_text_holds_no_value_of_the_corpus_and_nothing_to_mask_again(text: str) -> None:
    clean = masked(text, MASK)
    assert find(clean, MASK) == ()
    assert not any(value in clean for _, value in found(text))


@given(
    st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4), st.sampled_from([" ", "\n", ". ", " และ ", ""])
)
def test_findings_are_ordered_apart_and_masking_twice_is_masking_once(texts: list[str], between: str) -> None:
    text = between.join(texts)
    spans = [(start, end) for _, start, end in find(text, MASK)]
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert masked(masked(text, MASK), MASK) == masked(text, MASK)


@given(st.text())
def test_any_text_is_searched_without_error(text: str) -> None:
    for what, *_ in find(text, REFUSE):
        assert what in NAMES


def test_nested_data_is_searched_and_masked() -> None:
    data = {
        "turns": [{"text": "password: hunter2", "n": 1}, {"text": "สวัสดี"}],
        "apiKey": "zq81xkw02mf7",
        "card": 4111111111111111,
        "when": 1712345678901,
        "ok": True,
        "none": None,
        "score": 0.5,
    }
    clean, found_there = clean_data(data, ALLOW)
    assert found_there == {"password", "api_key", "card"}
    assert clean == {
        **data,
        "turns": [{"text": "password: [password]", "n": 1}, {"text": "สวัสดี"}],
        "apiKey": "[api_key]",
        "card": "[card]",
    }


@pytest.mark.parametrize(
    "key", ["password", "PASSWORD", "db_password", "userPassword", "pwd", "รหัสผ่าน", "passphrase"]
)
def test_a_key_that_names_a_secret_gives_its_value_away(key: str) -> None:
    assert clean_data({key: ["swordfish"]}, ALLOW) == ({key: ["[password]"]}, {"password"})


@pytest.mark.parametrize(
    "data",
    [
        {"password": "required"}, {"password": None}, {"password": ""}, {"token": "expired"},
        {"max_tokens": 4096}, {"password_policy": "strict"}, {"secret": "patience"}, {"note": "ลืมรหัสผ่าน"},
        {"key": "value"}, ("a", 1),
    ],
)  # fmt: skip
def test_data_without_a_secret_comes_back_as_it_is(data: Any) -> None:
    assert clean_data(data, REFUSE) == (data, set())


def test_secrets_in_keys_are_masked_and_no_value_is_lost() -> None:
    data = {"4111 1111 1111 1111": 1, "5105 1051 0510 5100": 2}
    assert clean_data(data, ALLOW) == ({"[card]": 1, "[card]'": 2}, {"card"})


def test_data_nested_too_deep_is_an_error_with_a_hint() -> None:
    data: Any = "leaf"
    for _ in range(100):
        data = [data]
    with pytest.raises(BadInput, match="nested deeper than 64"):
        clean_data(data, ALLOW)


@given(st.lists(st.sampled_from(TEXTS) | st.text(max_size=20), max_size=4))
def test_what_is_found_in_a_part_makes_the_whole_suspect(parts: list[str]) -> None:
    for policy in (ALLOW, MASK):
        if any(find(part, policy) for part in parts):
            assert is_suspect("\n".join(parts), policy)


def test_every_pattern_that_searches_a_text_is_bounded() -> None:
    patterns = {
        name: found
        for module in (privacy, named_secrets, numbers, tokens)
        for name, found in vars(module).items()
        if isinstance(found, Pattern | re.Pattern)
    }
    assert set(_ON_VALUES) < set(patterns)
    for name, found in patterns.items():
        if name not in _ON_VALUES:
            assert list(_unbounded(_parser.parse(found.pattern, found.flags))) == [], name


# These see one value, one run or one stretch of digits, and each character of it once.
_ON_VALUES = ("_NO_VALUE", "_WORD", "_DESCRIBES", "_PUBLIC", "_PIECE", "_DIGITS")


def _unbounded(parsed: Any) -> Any:
    """The repeats without a bound that can give back what they took."""
    for op, argument in parsed:
        if op in (_constants.MAX_REPEAT, _constants.MIN_REPEAT) and argument[1] == _constants.MAXREPEAT:
            yield argument
        for part in argument if isinstance(argument, tuple | list) else (argument,):
            if isinstance(part, _parser.SubPattern):
                yield from _unbounded(part)
            elif isinstance(part, list):
                for branch in part:
                    yield from _unbounded(branch)


@pytest.mark.parametrize(
    "unit",
    [
        "a", "1", "1 ", "1-", "123-45-", "eyJ-", "eyJaaaaaaaa.eyJaaaa", "password ", "password:",
        "password for ", "password is a ", "รหัสผ่าน", "รหัสผ่านคือ", "token ", "bearer a", "://a:", "-----BEGIN ",
        "aA1/", "aA1-", "sk-a", "a@", "a@a.", "+1", "de89 ", "1\u200b", "pin for ", "login a/",
        "abc1 is my password ", "passphrase: word ",
    ],
)  # fmt: skip
def test_hostile_text_costs_in_proportion_to_its_length(unit: str) -> None:
    assert _calls(unit, 100_000) <= 4.5 * _calls(unit, 25_000) + 200


def _calls(unit: str, size: int) -> int:
    """How many calls a search makes; what one call of a bounded pattern does is bounded too."""
    text = (unit * (size // len(unit) + 1))[:size]
    count = 0

    def counting(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counting)
    try:
        find(text, REFUSE)
    finally:
        sys.setprofile(None)
    return count


MAKES = [
    aws.AWSKeyDetector(), basic_auth.BasicAuthDetector(), github_token.GitHubTokenDetector(),
    gitlab_token.GitLabTokenDetector(), jwt.JwtTokenDetector(), npm.NpmDetector(), openai.OpenAIDetector(),
    private_key.PrivateKeyDetector(), sendgrid.SendGridDetector(), slack.SlackDetector(),
    stripe.StripeDetector(), telegram_token.TelegramBotTokenDetector(),
]  # fmt: skip


def test_whatever_detect_secrets_knows_by_its_make_is_found_here_too() -> None:
    known = 0
    for text in TEXTS:
        ours = [value for _, value in found(text)]
        for make in MAKES:
            for secret in (s for line in text.splitlines() for s in make.analyze_string(line)):
                known += 1
                assert any(secret in value or value in secret for value in ours), (make.secret_type, text)
    assert known >= 20


@pytest.mark.parametrize("length", [20, 24, 32, 40, 64])
def test_random_tokens_are_found_at_least_as_often_as_by_entropy_alone(length: int) -> None:
    # Entropy in bits a character grows with the length, so a limit of 4.5 sees no short token; the length
    # of the pieces does not, so we see them. The seed is fixed: the tokens are the same in every run.
    rng = random.Random(length)
    limit = high_entropy_strings.Base64HighEntropyString(limit=4.5)
    tokens = ["".join(rng.choices(string.ascii_letters + string.digits + "-_", k=length)) for _ in range(300)]
    ours = sum(bool(find(f"it says {token} here", ALLOW)) for token in tokens)
    theirs = sum(limit.calculate_shannon_entropy(token) > 4.5 for token in tokens)
    assert ours >= 0.93 * len(tokens)
    assert ours >= theirs - 3


def test_unlike_detect_secrets_a_digest_in_a_sentence_is_no_secret_but_after_a_name_it_is() -> None:
    digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    hexadecimal = high_entropy_strings.HexHighEntropyString(limit=3.0)
    assert hexadecimal.calculate_shannon_entropy(digest) > 3.0
    assert find(f"the file's sha256 is {digest}", ALLOW) == ()
    assert found(f"api_token={digest}") == [("api_key", digest)]


def test_digits_of_several_lines_are_no_number_and_need_no_closer_look() -> None:
    assert not is_suspect("bought 1234\nซื้อ 5678 ชิ้น\n90 left", ALLOW)
    assert is_suspect("bought 1234\ncard 4111 1111 1111 1111", ALLOW)


@given(
    st.from_regex(
        screening._OWN.pattern, fullmatch=True, alphabet=string.ascii_lowercase + string.digits + "_-"
    )
)
def test_a_name_that_is_let_through_by_its_form_holds_no_secret(name: str) -> None:
    """Short words and numbers are not looked at any closer; the engine's own long ids are random."""
    if len(name) < 20:
        assert not [what for what, *_ in find(name, privacy.HARD) if what not in ("email", "phone")]


@pytest.mark.parametrize("name", ["pin1234", "otp-123456", "cvv123", "cvc_1234"])
def test_a_short_name_that_says_a_number_to_keep_is_looked_at(name: str) -> None:
    assert screening._OWN.fullmatch(name) is None


def test_a_decimal_number_is_no_card_by_its_digits():
    assert find("[442928.5390005561]", ALLOW) == ()
    assert found("4429 2853 9000 5561")[0][0] == "card"
    assert found("4429.2853.9000.5561")[0][0] == "card"


@pytest.mark.parametrize("stem", privacy._ABROAD_STEMS)
def test_a_word_of_another_script_is_looked_for_wherever_one_of_its_letters_stands(stem):
    plain = f"ตลาด {stem}"
    assert privacy.abroad in privacy._hinted(plain, plain, PrivacyPolicy())
