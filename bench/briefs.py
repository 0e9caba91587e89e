"""Briefs: how much of the evidence of LoCoMo's questions stands in `account.brief` within a budget of tokens.

python -m bench.briefs <folder with locomo-dev.json> [--budget 1000] [--talks 2]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from itertools import groupby
from pathlib import Path
from typing import Any

import octavo
from bench.locomo import Turn, percent, turns_of
from octavo.domain.brief_page import escape
from octavo.domain.compression import CompressionPolicy
from octavo.domain.policy import Policy


def main() -> None:
    """Ask every question of categories 1 to 4 and print the share of its evidence in the brief."""
    options = _options()
    shares: list[float] = []
    tokens: list[int] = []
    seconds: list[float] = []
    for talk in json.loads((options.data / "locomo-dev.json").read_text())[: options.talks]:
        turns = list(turns_of(talk["conversation"], captions=True))
        with tempfile.TemporaryDirectory() as folder:
            account = _filled(Path(folder), turns)
            for asked in talk["qa"]:
                evidence = [turn for turn in turns if turn.id in asked["evidence"]]
                if evidence and asked["category"] != 5:
                    began = time.process_time()
                    brief = account.brief(asked["question"], budget=options.budget)
                    seconds.append(time.process_time() - began)
                    told = [escape(turn.text) in brief.text for turn in evidence]
                    shares.append(sum(told) / len(told))
                    tokens.append(brief.tokens)
            account.close()
    result: dict[str, Any] = {
        "questions": len(shares),
        "budget": options.budget,
        "evidence": percent(shares),
        "tokens": statistics.median(tokens),
        "ms": round(1000 * statistics.median(seconds), 1),
    }
    print(json.dumps(result, indent=2))


def _filled(folder: Path, turns: list[Turn]) -> octavo.Account:
    """An account that holds a conversation, session by session, and no cores."""
    policy = Policy(compression=CompressionPolicy(mode="manual"))
    account = octavo.open(folder, actor="human:bench", policy=policy, reranker=False)
    for _, said in groupby(turns, key=lambda turn: turn.session):
        session = list(said)
        with account.sandbox(started_at=session[0].at) as sandbox:
            for turn in session:
                sandbox.turn(turn.speaker, turn.text, at=turn.at)
    account.catch_up()
    return account


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="the folder that holds locomo-dev.json")
    parser.add_argument("--budget", type=int, default=1_000, help="tokens")
    parser.add_argument("--talks", type=int, default=None, help="only the first conversations")
    return parser.parse_args()


if __name__ == "__main__":
    main()
