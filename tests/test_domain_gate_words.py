"""The gate's short cut: a short word of letters hides no secret, in any script."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from octavo.domain import privacy
from octavo.domain.policy import PrivacyPolicy

STRICT = PrivacyPolicy(email="mask", phone="mask")


@given(st.text(alphabet=st.characters(categories=("Lu", "Ll", "Lt", "Lm", "Lo")), min_size=1, max_size=15))
def test_a_short_word_of_letters_alone_is_never_a_secret(word):
    assert privacy.find(word, STRICT) == ()


@given(st.sampled_from(["password", "รหัสผ่าน", "token", "pin", "bearer", "กขค", "secretkey"]))
def test_the_name_of_a_secret_without_its_value_is_none(word):
    assert privacy.find(word, STRICT) == ()
