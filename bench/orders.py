"""Orders: is what the user asked for once in the brief when it applies, and absent when it does not?

Each account of the set lives through the front door: sessions of small talk, among them the orders and
wishes, each said once. Every request is put to `account.brief`; an order counts as shown if its words stand
under the heading for them.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import octavo
from octavo.domain.brief_page import ASKED_FOR
from octavo.domain.compression import CompressionPolicy
from octavo.domain.policy import Policy

SESSIONS, EXCHANGES = 12, 10
START = datetime(2026, 1, 5, 9, tzinfo=UTC)
DATA = Path(__file__).parent.parent / "tests" / "corpora" / "orders.jsonl"

TALK = {
    "en": (
        ("My {who} came over for {what} on {day}.", "How nice! Did you have a good time?"),
        ("The {thing} in the {place} broke again.", "That is annoying. Did you call someone?"),
        ("I finished the {thing} for the {place} at last.", "Well done! How did it turn out?"),
        ("We had {what} at the {place} with my {who}.", "Sounds lovely."),
        ("Work was long on {day}, the {thing} kept me busy.", "Get some rest tonight."),
        ("I found an old {thing} in the {place}.", "What a discovery!"),
    ),
    "th": (
        ("เมื่อ{day} {who}มากิน{what}ที่บ้าน", "ดีจัง สนุกไหมคะ"),
        ("{thing}ใน{place}เสียอีกแล้ว", "น่าหงุดหงิดนะคะ เรียกช่างหรือยัง"),
        ("ในที่สุดก็ทำ{thing}ที่{place}เสร็จ", "เก่งมากค่ะ"),
        ("{day}งานยุ่งมาก มัวแต่จัดการ{thing}", "พักผ่อนบ้างนะคะ"),
        ("เจอ{thing}เก่าใน{place}", "ตื่นเต้นเลยนะคะ"),
    ),
}
WORDS = {
    "en": {
        "who": ("sister", "uncle", "neighbour", "cousin", "old teacher", "colleague"),
        "what": ("soup", "tea", "a card game", "pancakes", "a film night", "board games"),
        "day": ("Monday", "Tuesday", "Thursday", "Friday", "Saturday"),
        "thing": ("lamp", "printer", "shelf", "clock", "report", "radio", "bookcase", "heater"),
        "place": ("cellar", "kitchen", "garage", "office", "attic", "club", "hall"),
    },
    "th": {
        "who": ("พี่สาว", "ลุง", "เพื่อนบ้าน", "ลูกพี่ลูกน้อง", "ครูเก่า"),
        "what": ("ข้าวต้ม", "ขนม", "ก๋วยเตี๋ยว", "ผลไม้"),
        "day": ("วันจันทร์", "วันอังคาร", "วันพฤหัส", "วันเสาร์"),
        "thing": ("โคมไฟ", "เครื่องพิมพ์", "ชั้นวางของ", "นาฬิกา", "รายงาน", "วิทยุ"),
        "place": ("ห้องใต้ดิน", "ครัว", "โรงรถ", "ออฟฟิศ", "ห้องเก็บของ"),
    },
}


def main() -> None:
    """Measure every account of the set and print the table."""
    options = _options()
    rows = [json.loads(line) for line in options.data.read_text("utf-8").splitlines() if line.strip()]
    right: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    seconds: list[float] = []
    for name, some in groupby(rows, key=lambda row: row["account"]):
        for result in lived(name, list(some), words=options.words):
            row, question, applies, is_shown, took = result
            right[row["half"], "shown when it applies" if applies else "absent when not", row["kind"]].append(
                is_shown == applies
            )
            seconds.append(took)
            if options.errors and is_shown != applies:
                print(row["half"], "missing" if applies else "idle", "|", row["text"], "|", question)
    for half in sorted({half for half, _, _ in right}):
        for what in ("shown when it applies", "absent when not"):
            told = [f"{half:5} {what:22}"]
            both = [ok for kind in ("order", "wish") for ok in right[half, what, kind]]
            for kind, oks in (
                ("all", both),
                *((kind, right[half, what, kind]) for kind in ("order", "wish")),
            ):
                told.append(f"{kind} {sum(oks)}/{len(oks)} = {100 * sum(oks) / max(1, len(oks)):.1f} %")
            print("  ".join(told))
    print(f"a brief: median {1000 * statistics.median(seconds):.1f} ms")


def lived(
    name: str, rows: Sequence[dict[str, Any]], *, words: bool
) -> Iterator[tuple[dict[str, Any], str, bool, bool, float]]:
    """Live through an account, then ask for each row's requests."""
    policy = Policy(compression=CompressionPolicy(mode="manual"))
    with tempfile.TemporaryDirectory() as folder:
        clock = [START]
        embedder = False if words else None
        with octavo.open(
            folder,
            account=name,
            actor="agent:bench",
            policy=policy,
            embedder=embedder,
            clock=lambda: clock[0],
        ) as account:
            turns = list(talk(name, rows))
            for session in range(SESSIONS):
                with account.sandbox(f"Session {session}") as sandbox:
                    for said, answered in turns[session * EXCHANGES : (session + 1) * EXCHANGES]:
                        clock[0] += timedelta(minutes=5)
                        sandbox.turn("user", said)
                        sandbox.turn("assistant", answered)
                clock[0] += timedelta(days=3)
            account.catch_up()
            for row in rows:
                for applies, questions in ((True, row["applies"]), (False, row["idle"])):
                    for question in questions:
                        start = time.perf_counter()
                        brief = account.brief(question, budget=1500)
                        took = time.perf_counter() - start
                        yield row, question, applies, row["text"] in _plain(brief.orders), took


def talk(name: str, rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Small talk, with each order said once, always in the same places."""
    chance = random.Random(name)
    places = chance.sample(range(SESSIONS * EXCHANGES), len(rows))
    said = dict(zip(places, (row["text"] for row in rows), strict=True))
    lang = rows[0]["lang"]
    for place in range(SESSIONS * EXCHANGES):
        if place in said:
            yield said[place], "Noted." if lang == "en" else "รับทราบค่ะ"
            continue
        statement, answer = chance.choice(TALK[lang])
        yield statement.format(**{key: chance.choice(some) for key, some in WORDS[lang].items()}), answer


def _plain(orders: str) -> str:
    """What stands under the heading, without escapes."""
    return orders.replace("\\", "").replace(f"## {ASKED_FOR}", "")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="?", default=DATA, help="a file of orders (tests/corpora)")
    parser.add_argument("--words", action="store_true", help="without an embedder")
    parser.add_argument("--errors", action="store_true", help="print each request that went wrong")
    return parser.parse_args()


if __name__ == "__main__":
    main()
