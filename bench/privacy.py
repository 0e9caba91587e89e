"""How often the gate's text checks are wrong on their corpora, with every error, and what they cost.

Run `python bench/privacy.py`; it needs no data folder. In the corpora "¦" breaks strings that secret
scanners of code hosts would take for real keys; readers drop it.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from octavo.domain.noise import is_noise
from octavo.domain.policy import GatePolicy, PrivacyPolicy
from octavo.domain.privacy import find

CORPORA = Path(__file__).parents[1] / "tests" / "corpora"
ENGLISH = (
    "I talked with Anna yesterday about the trip to Chiang Mai in November, we think the 14th works best and "
    "she would book the hotel near the old town if the price stays under 2500 baht a night, right?"
)
THAI = (
    "เมื่อวานคุยกับแอนนาเรื่องไปเที่ยวเชียงใหม่เดือนพฤศจิกายน คิดว่าวันที่ 14 น่าจะดีที่สุด แล้วเขาจะจองโรงแรมใกล้เมืองเก่า"
    "ถ้าราคาไม่เกิน 2500 บาทต่อคืน ส่วนเรื่องตั๋วเครื่องบินเดี๋ยวค่อยว่ากันอีกทีนะ"
)


def rows(name: str) -> list[dict[str, Any]]:
    """The lines of a corpus."""
    text = (CORPORA / name).read_text(encoding="utf-8").replace("¦", "")
    return [json.loads(line) for line in text.splitlines()]


def report(title: str, right: int, wrong: int, missed: int) -> None:
    """Print precision and recall."""
    print(f"{title}: precision {right / (right + wrong):.4f}, recall {right / (right + missed):.4f}")


def measure_privacy() -> None:
    """Print each wrong or missed finding, then precision and recall, by type and together."""
    policy = PrivacyPolicy()
    right, wrong, missed = Counter[str](), Counter[str](), Counter[str]()
    for row in rows("privacy.jsonl"):
        text = row["text"]
        expected = {(what, value) for what, value in row["find"]}
        found = {(what, text[start:end]) for what, start, end in find(text, policy)}
        for counter, findings in (
            (right, found & expected), (wrong, found - expected), (missed, expected - found)
        ):  # fmt: skip
            counter.update(what for what, _ in findings)
        if found != expected:
            print(f"  {text!r}: wrong {sorted(found - expected)}, missed {sorted(expected - found)}")
    for what in sorted(right | wrong | missed):
        print(f"  {what}: right {right[what]}, wrong {wrong[what]}, missed {missed[what]}")
    report("privacy", right.total(), wrong.total(), missed.total())


def measure_noise() -> None:
    """Print each line that is taken for noise and is none, or the reverse."""
    signals = GatePolicy().signals
    right = wrong = missed = 0
    for row in rows("noise.jsonl"):
        found = is_noise(row["text"], tuple(row.get("signals", signals))) is not None
        right += found and row["noise"]
        wrong += found and not row["noise"]
        missed += row["noise"] and not found
        if found != row["noise"]:
            print(f"  {row['text']!r}: {'wrong' if found else 'missed'}")
    report("noise", right, wrong, missed)


def microseconds(call: Callable[[], object], times: int = 2000) -> float:
    """The best of five runs, in microseconds a call."""
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(times):
            call()
        best = min(best, time.perf_counter() - start)
    return best / times * 1e6


def main() -> None:
    """Measure and print."""
    measure_privacy()
    measure_noise()
    signals, policy = GatePolicy().signals, PrivacyPolicy()
    for title, text in (("English", ENGLISH), ("Thai", THAI)):
        cost = microseconds(lambda text=text: find(text, policy))  # type: ignore[misc]
        print(f"find, {title} turn of {len(text)} characters: {cost:.1f} µs")
        cost = microseconds(lambda text=text: is_noise(text, signals))  # type: ignore[misc]
        print(f"is_noise, the same: {cost:.1f} µs")
    texts = [row["text"] for row in rows("privacy.jsonl")]
    cost = microseconds(lambda: [find(text, policy) for text in texts], times=3) / len(texts)
    print(f"find, a text of the corpus: {cost:.1f} µs")


if __name__ == "__main__":
    main()
