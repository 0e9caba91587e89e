"""What a sentence does, by its words: small talk, news, requests, feelings; the words are data.

English words stand as `text.words` gives them: folded, without apostrophes.
"""

from __future__ import annotations

import re

from octavo import words
from octavo.domain.patterns import pattern
from octavo.domain.text import STOP_WORDS

# Words that tell no topic, besides the stop words of search.
STOP = STOP_WORDS | words.listed("talk.stop")
SMALL_TALK = words.listed("talk.small_talk", spaced=True)
GENERIC = words.listed("talk.generic", spaced=True)
DANGLING = words.listed("talk.dangling")
FIRST_PERSON = words.listed("talk.first_person", spaced=True)
SECOND_PERSON = words.listed("talk.second_person", spaced=True)
LEANING_RUN = words.listed("talk.leaning_run")
ASSISTANTS = words.listed("talk.assistants")


def cue(name: str) -> re.Pattern[str]:
    """The pattern of a list of cues in every language, whatever the case."""
    return pattern(words.cue(name), re.IGNORECASE)


OPENERS = words.lines("talk.openers", "en")
NEWS = cue("talk.news")
PAST = cue("talk.past")
REQUEST = cue("talk.request")
VAGUE = cue("talk.vague")
POINTING = cue("talk.pointing")
WHEN = cue("talk.when")
QUESTION_TH = cue("talk.question")
WISH_TH = cue("talk.wish")
ADDRESSED_TH = pattern(words.block("talk.second_person", "th"))
FEELINGS = {label: cue(f"feelings.{label}") for label in words.languages()["en"]["feelings"]}

# Behind these a full stop ends no sentence: "รพ. กรุงเทพ", "10.30 น. ", "20 มิ.ย. ".
_SHORT = (*words.block("talk.abbreviated", "th").split(), "[.\\s\\d][ก-ฮ]", "^[ก-ฮ]")
UNENDED = "".join(f"(?<!{short}\\.)" for short in _SHORT)
THAI = pattern("[\u0e00-\u0e7f]")
THAI_SMALL_TALK = pattern("|".join(words.block("talk.small_talk", "th").split()))
