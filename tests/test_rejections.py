"""Rejections: a refused value stays out by every field and however it is dressed up."""

from __future__ import annotations

import pytest

from octavo.domain.lookalikes import look
from octavo.errors import BadInput, Refused

VALUE = "hates tea"
DRESSED = [
    "HATES TEA",
    "hates\u200b tea",
    "hаtеs tеa",  # Cyrillic
    "ʜᴀᴛᴇꜱ ᴛᴇᴀ",  # small capitals
    "h̶a̶t̶e̶s̶ t̶e̶a̶",  # struck through by combining marks
    "hátés tëa",
    "ʰᵃᵗᵉˢ ᵗᵉᵃ",  # modifier letters
    "h.a.t.e.s t.e.a",
    "h a t e s  t e a",
    "𝓱𝓪𝓽𝓮𝓼 𝓽𝓮𝓪",
    "ⓗⓐⓣⓔⓢ ⓣⓔⓐ",
    "🇭🇦🇹🇪🇸 🇹🇪🇦",
    "hates-tea!",
    "h4t3s t34",  # digits for letters
    "h@te$ te@",
    "ᕼᗩTEᔕ TEᗩ",  # syllabics
    "ⲏⲁⲧⲉs ⲧⲉⲁ",  # Coptic
    "ħⱥŧɇs ŧɇⱥ",  # struck letters
    "ɥɐʇǝs ʇǝɐ",  # turned letters
]


@pytest.mark.parametrize("dressed", DRESSED)
def test_a_rejected_value_stays_out_however_it_is_dressed_up(account, agent, dressed):
    account.reject(VALUE)
    assert agent.remember(dressed).check == "rejection"
    assert agent.remember("hates coffee").outcome == "admitted"


def test_a_capital_i_is_no_dress_for_an_l_and_numbers_stay_numbers(account, agent):
    account.reject("likes oil")
    assert agent.remember("Iikes oiI").check == "rejection"
    assert agent.remember("likes 0il").check == "rejection"
    account.reject("pays 100 baht")
    assert agent.remember("pays 700 baht").outcome == "admitted"
    assert agent.remember("lives in Italy").outcome == "admitted"


def test_thai_vowels_and_tones_are_no_dress(account, agent):
    account.reject("ไม่ชอบชา")
    assert agent.remember("ไม่ชอบ ชา").check == "rejection"
    assert agent.remember("ไม่ชอบช้า").outcome == "admitted"
    assert look("มา") != look("ม้า")


def test_a_rejected_value_comes_in_by_no_other_field(account, agent):
    account.reject(VALUE)
    assert agent.remember("something", kind="register", topic="ʜᴀᴛᴇꜱ ᴛᴇᴀ").check == "rejection"
    kept = agent.remember(
        "likes the sea",
        tags=["Hates tea", "sea"],
        data={"note": ["hates tea", "blue"], VALUE: 1},
        emotion=VALUE,
    ).memory
    assert kept.tags == ("sea",)
    assert kept.data == {"note": ["[refused]", "blue"], "[refused]": 1}
    assert kept.emotion.label == "[refused]"
    with agent.sandbox() as sandbox:
        sandbox.update_state("mood", {"said": "hates tea", "now": "calm"})
        assert sandbox.update_state(VALUE, {"now": "calm"}).check == "rejection"
    (state,) = account.memories(kind="register")
    assert state.data == {"said": "[refused]", "now": "calm"}
    assert VALUE not in account.brief().text


@pytest.mark.parametrize(
    "text",
    [
        "hates &#112;ineapple pizza",
        "hates%20pineapple%20pizza",
        "hates <b>pine</b>apple pizza",
        "[hates pineapple](http://x.example) pizza",
        "hates \\u0070ineapple pizza",
        "hates \u202eelppaenip\u202c pizza",
        "hates pine\u3164apple pizza",
        "hat€s pineapple pi22a",
        "Likes tea. Hates pineapple pizza.",
        "Note: hates pineapple pizza",
        "likes tea\nhates pineapple pizza",
    ],
)
def test_markup_escapes_and_company_are_no_dress(account, agent, text):
    account.reject("hates pineapple pizza")
    assert agent.remember(text).check == "rejection"
    assert agent.remember("Likes tea. Hates pineapple juice.").outcome == "admitted"
    assert agent.remember("Note: hates%20pineapple cake").outcome == "admitted"


@pytest.mark.parametrize("text", ["born in ๑๙๘๔", "born in l984", "born in I984"])
def test_digits_of_other_scripts_and_letters_in_numbers_are_no_dress(account, agent, text):
    account.reject("born in 1984")
    assert agent.remember(text).check == "rejection"
    assert agent.remember("born in ๑๙๘๕").outcome == "admitted"


def test_thai_typed_in_another_order_is_no_dress(account, agent):
    account.reject("แม่ไม่ชอบแกงที่นี่")
    assert agent.remember("เเม่ไม่ชอบเเกงท่ีน่ี").check == "rejection"
    assert agent.remember("แม่ชอบแกงที่นี่").outcome == "admitted"


def test_a_rejected_value_is_masked_in_what_an_episode_carries_and_its_words_are_kept(account, agent):
    account.reject("hates pineapple pizza")
    value = "hates pineapple-pizza"
    assert agent.sandbox(value).name == "[refused]"
    assert agent.alias("Ann", value).check == "rejection"
    assert agent.remember("x", kind="register", topic=f"food/{value}").check == "rejection"
    assert agent.remember("likes trams", links={"hates_pineapple_pizza": ["x"]}).memory.links == ()
    with agent.sandbox("talk") as sandbox:
        sandbox.turn(value, "Ann hates pineapple pizza.", emotion={"label": value}, data={"why": value})
    (episode,) = account.memories(kind="episode")
    (turn,) = episode.turns
    assert (turn.speaker, turn.text) == ("[refused]", "Ann hates pineapple pizza.")
    assert (turn.emotion.label, turn.data) == ("[refused]", {"why": "[refused]"})
    assert agent.alias("Ann", "Anna").outcome == "admitted"


def test_a_lifted_rejection_lets_every_form_in_again(account, agent):
    account.reject(VALUE)
    account.unreject(VALUE)
    assert agent.remember("h.a.t.e.s t.e.a").outcome == "admitted"
    assert account.rejections() == []


def test_a_person_may_override_a_rejection_with_a_reason(account):
    account.reject(VALUE)
    assert account.remember(VALUE, override="it changed").outcome == "admitted"


def test_a_rejected_value_is_not_even_proposed(account, agent):
    account.reject("hates tea")
    fact, other = (
        agent.remember("drinks tea on Mondays").memory,
        agent.remember("drinks tea on Fridays").memory,
    )
    for propose in (
        lambda: agent.promote(fact.id, "hates tea"),
        lambda: agent.propose_merge(fact.id, other.id, "ʜᴀᴛᴇꜱ ᴛᴇᴀ"),
    ):
        with pytest.raises(Refused, match="rejection"):
            propose()
    assert account.proposals() == []
    agent.promote(fact.id, tags=["hates tea", "weekly"])
    [proposal] = account.proposals()
    assert proposal.memory.tags == ("weekly",)
    with pytest.raises(Refused):
        account.approve(proposal.id, text="Hates tea!")
    assert account.approve(proposal.id).text == "drinks tea on Mondays"


@pytest.mark.parametrize("dressed", ["\u13c2ates tea", "\u202eaet setah", "\U00013a00"])
def test_other_scripts_and_directions_are_no_dress(account, agent, dressed):
    account.reject("hates tea")
    is_alike = dressed != "\U00013a00"
    assert (agent.remember(dressed).check == "rejection") == is_alike


def test_an_id_is_no_value_to_reject(account, agent):
    waiting = agent.remember("the user hates Mondays", kind="canon").proposal
    fact = account.remember("ชอบชาเขียว").memory
    for id_ in (waiting, fact.id):
        with pytest.raises(BadInput, match="is an id") as told:
            account.reject(id_)
        assert f"decline or forget {id_}" in told.value.advice
    assert not account.rejections()
    assert account.reject("ชอบชาเขียว") == [fact.id]
