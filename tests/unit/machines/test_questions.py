"""Questions to clients: how many wait, and whose places they take."""

from bolide.machines.questions import Questions
from bolide.model.limits import RELAYS_MAX, RELAYS_OF_ASKER_MAX, RELAYS_OF_ONE_MAX


def ask_as_often_as_allowed(questions: Questions[str], host: str) -> int:
    """From ever new connections, to ever new clients."""
    count = 0
    while questions.begin(f"{host}:{count}", host, f"client {host} {count}"):
        count += 1
    return count


def test_one_client_is_asked_so_much_at_once_whoever_asks() -> None:
    questions: Questions[str] = Questions()
    for number in range(RELAYS_OF_ONE_MAX):
        assert questions.begin(f"asker {number}", f"host {number}", "client")
    assert not questions.begin("another", "elsewhere", "client")
    questions.end("asker 0", "host 0", "client")
    assert questions.begin("another", "elsewhere", "client")


def test_one_connection_leaves_room_to_the_others_of_its_host() -> None:
    questions: Questions[str] = Questions()
    for number in range(RELAYS_OF_ASKER_MAX):
        assert questions.begin("greedy", "host", f"client {number}")
    assert not questions.begin("greedy", "host", "one more")
    assert questions.begin("modest", "host", "one more")


def test_a_host_leaves_as_much_to_others_as_it_takes_and_many_hosts_leave_something() -> None:
    questions: Questions[str] = Questions()
    first = ask_as_often_as_allowed(questions, "greedy")
    assert first <= RELAYS_MAX - questions.count
    for number in range(20):
        ask_as_often_as_allowed(questions, f"also greedy {number}")
    assert questions.begin("modest", "far away", "client")


def test_nothing_is_remembered_of_questions_that_are_over() -> None:
    questions: Questions[str] = Questions()
    questions.begin("asker", "host", "client")
    questions.end("asker", "host", "client")
    assert questions.count == 0
    assert {*questions._asked, *questions._asking, *questions._hosts} == set()
