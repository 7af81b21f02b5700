"""Both judges of SQL expressions say the same, of every form of expression and of any properties."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.peers.sql_questions import NAMES, TEXTS, questions
from tests.property.twins import JUDGES, outcome

PAIRS = st.lists(
    st.tuples(st.sampled_from([*NAMES, "", "aa"]), st.sampled_from([*TEXTS, "", "a\x01b"]), st.booleans()),
    max_size=8,
)


@given(st.integers(0, 2**32), PAIRS, st.binary(max_size=40))
@settings(max_examples=500)
def test_both_say_the_same_of_a_message(seed: int, pairs: list[tuple[str, str, bool]], rest: bytes) -> None:
    stored = b"".join(
        f"{name}\x01{value}".encode() + (b"\x02" if is_ended else b"") for name, value, is_ended in pairs
    )
    for question in questions(seed, 3, messages=1):
        said = [
            outcome(
                lambda expression, module=module: module.Judge(expression).wants(stored + rest),
                question.expression,
            )
            for module in JUDGES
        ]
        assert said[0] == said[1], question.expression
