"""The kinds of work that are told apart, and to which of them a callback belongs."""

from collections.abc import Mapping

START = "start"
PREPARATION = "preparation"
"""What is done before the first kind and between two of them; neither is shown."""

KINDS: Mapping[str, str] = {
    "sends": "sends, 64 connections at once",
    "odd_sends": "sends without a unique key: no run, one by one",
    "new_queues": "first messages of as many queues as there are topics",
    "pulls": "pulls, 64 connections at once",
    "wake": "one message wakes all held pulls",
    "sweep": "the time of all held pulls is over",
    "roll": "roll to a new segment of the log",
    "create_topic": "create a topic",
    "delete_topic": "delete a topic of 1,024 queues",
    "dump_topics": "write topics.json",
    "dump_groups": "write subscriptionGroup.json",
    "dump_offsets": "write consumerOffset.json",
    "register_broker": "registration, the broker's end",
    "register_nameserver": "registration, the name server's end",
    "ask_21": "answer 21, all topics",
    "ask_201": "answer 201, all groups",
    "ask_43": "answer 43, all offsets",
    "ask_202": "answer 202, a topic of 1,024 queues",
    "ask_208": "answer 208, a group that reads every topic",
    "ask_300": "answer 300, a topic that every group reads",
    "ask_343": "answer 343, a group that reads every topic",
    "ask_305": "answer 305, built-in topics",
    "ask_28": "answer 28, state as text",
    "ask_25": "answer 25, change a setting",
    "ask_26": "answer 26, all settings",
    "ask_38": "answer 38, members of a large group",
    "ask_203": "answer 203, connections of a large group",
    "ask_206": "answer 206, all topics (name server)",
    "new_group": "heartbeat with a new group",
    "member_exit": "a member leaves a large group",
    "retention": "retention run",
    "checkpoint": "checkpoint of all queues",
    "expiry": "all clients expire at once",
}
"""Key to title, in the order in which they run."""

_TASKS = {
    "topics.json": "dump_topics",
    "subscriptionGroup.json": "dump_groups",
    "consumerOffset.json": "dump_offsets",
    "held pulls": "sweep",
    "silent clients": "expiry",
    "checkpoint": "checkpoint",
    "request 103": "register_nameserver",
}
"""Background work goes by the name of its task, whatever else goes on; so do registrations."""


def kind_of(current: str, where: str) -> str:
    """The kind of a callback of this name; `current` is what the driver is doing."""
    if current == START:
        return START
    if where.startswith("Measured."):  # the process listens to its driver
        return PREPARATION
    if where in _TASKS:
        return _TASKS[where]
    if where.startswith("retention "):
        return "retention"
    if where.startswith(("Registrar.", "caller:")):
        return "register_broker"
    if where.startswith("name server:") and current != "ask_206":
        return "register_nameserver"
    return current
