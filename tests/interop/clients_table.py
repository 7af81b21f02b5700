"""Which feature works here with which real client, by which test; or why the client cannot do it.

`section()` is the part "Clients" of docs/compatibility.md.  A test holds the table to the tests that there are.
"""

from typing import NamedTuple

CLIENTS = ("Java 5.5.0 and 4.9.7", "Go 2.1.2", "Node ali-ons 3.12.0")


class Works(NamedTuple):
    """Tests that show it, each as file::test, without the folder and `test_`; and what the client does not do of it."""

    tests: tuple[str, ...]
    but: str = ""


class Cannot(NamedTuple):
    """The client lacks it."""

    because: str


class Row(NamedTuple):
    """A feature and what each of `CLIENTS` makes of it."""

    feature: str
    java: Works | Cannot
    go: Works | Cannot
    node: Works | Cannot


def works(*tests: str, but: str = "") -> Works:
    return Works(tests, but)


SYNC = "every_sync_message_arrives_once_where_its_acknowledgement_said"
ASYNC = "every_async_message_arrives_once_where_its_acknowledgement_said"
ONEWAY = "every_oneway_message_arrives_once"
BATCH = "a_batch_becomes_single_messages_side_by_side_in_one_queue"
ONE_ORDER = "messages_of_one_order_stay_in_one_queue_and_in_order"
PROPERTIES = "tags_keys_properties_and_large_compressed_bodies_arrive_unchanged"
NEW_TOPIC = "an_unknown_topic_is_created_with_four_queues_by_the_first_send"
SHARE = "members_of_a_group_share_the_messages_and_each_is_handled_once"
BROADCAST = "in_broadcasting_every_member_gets_every_message"
TAGS = "a_tag_expression_lets_only_its_tags_through"
SQL = "an_sql_expression_lets_only_its_messages_through"
TWO_GROUPS = "two_groups_on_one_topic_both_receive_every_message"
GOES_ON = "a_group_goes_on_where_it_stopped"
RESTART = "a_group_goes_on_after_a_restart_of_the_server"
NAMESPACE = "a_namespace_is_part_of_the_names_of_topics_and_groups"
AGAIN = "a_failed_message_comes_again_under_its_own_topic"
DEAD = "a_message_that_always_fails_is_a_dead_letter"
DELAYED = "delayed_messages_come_once_to_their_queue_and_never_early"
REPLIES = "each_request_gets_the_reply_to_it"
PULLS = "a_pull_consumer_reads_what_its_expression_wants"

ROWS = (
    Row(
        "send, and wait for the answer",
        works(f"send::{SYNC}"),
        works(f"go::{SYNC}"),
        works("node::every_message_arrives_once_where_its_acknowledgement_said"),
    ),
    Row(
        "send with a callback",
        works(f"send::{ASYNC}"),
        works(f"go::{ASYNC}"),
        works("node::every_message_of_many_in_flight_arrives_once_where_its_acknowledgement_said"),
    ),
    Row(
        "send one-way",
        works(f"send::{ONEWAY}"),
        works(f"go::{ONEWAY}"),
        Cannot("it has no such call"),
    ),
    Row(
        "send a batch",
        works(f"send::{BATCH}"),
        works(f"go::{BATCH}"),
        Cannot("it has no such call"),
    ),
    Row(
        "tags, keys, properties, compressed bodies",
        works("send::tags_keys_and_a_large_compressed_body_arrive_unchanged"),
        works(f"go::{PROPERTIES}"),
        works(f"node::{PROPERTIES}"),
    ),
    Row(
        "a first send creates its topic",
        works(f"send::{NEW_TOPIC}"),
        works(f"go::{NEW_TOPIC}"),
        Cannot("it gives up when the name server does not know the topic, and does not ask for the template"),
    ),
    Row(
        "messages of one order stay in one queue",
        works(f"send::{ONE_ORDER}"),
        works("go::messages_of_one_order_are_consumed_in_order_under_a_lock_of_their_queue"),
        works(f"node::{ONE_ORDER}", but="it spreads the orders that fall on queue 0"),
    ),
    Row(
        "push consumption: a group shares the messages",
        works(f"push::{SHARE}"),
        works(f"go::{SHARE}", f"go::{TWO_GROUPS}"),
        works(f"node::{SHARE}", f"node::{TWO_GROUPS}"),
    ),
    Row(
        "push consumption: broadcasting",
        works("push::in_broadcasting_every_member_gets_every_message_and_the_broker_keeps_no_offset"),
        works(f"go::{BROADCAST}"),
        works(f"node::{BROADCAST}"),
    ),
    Row(
        "orderly consumption, with a lock of each queue",
        works("orderly::a_message_that_fails_comes_again_at_once_and_those_behind_it_wait"),
        works("go::an_orderly_consumer_that_fails_sees_the_same_message_again_before_the_next"),
        Cannot("it locks no queues; one process consumes each queue in order"),
    ),
    Row("filter by tags", works(f"push::{TAGS}"), works(f"go::{TAGS}"), works(f"node::{TAGS}")),
    Row("filter by SQL92", works(f"push::{SQL}"), works(f"go::{SQL}"), works(f"node::{SQL}")),
    Row(
        "pull consumption",
        works("pull::a_pull_consumer_reads_every_queue_to_its_end"),
        works(f"go::{PULLS}"),
        Cannot("it has a push consumer only"),
    ),
    Row(
        "polling as a member of a group",
        works("pull::a_lite_pull_consumer_shares_a_group_and_resumes_from_its_commit"),
        works("go::a_polling_member_gets_the_messages_and_its_acknowledgements_are_kept"),
        Cannot("it has a push consumer only"),
    ),
    Row(
        "queues move when members come and go",
        works("rebalance::consumers_that_join_and_leave_share_the_queues_at_once_and_lose_nothing"),
        works("go::queues_move_at_once_when_members_join_and_leave_and_nothing_is_lost"),
        works("node::queues_move_when_members_join_and_leave_and_nothing_is_lost"),
    ),
    Row(
        "offsets survive clients and servers",
        works(
            f"push::{GOES_ON}",
            "restart::messages_and_committed_offsets_survive_a_restart_and_live_clients_go_on",
        ),
        works(f"go::{GOES_ON}", f"go::{RESTART}"),
        works(f"node::{GOES_ON}", f"node::{RESTART}"),
    ),
    Row(
        "retries",
        works("retry::a_message_that_fails_comes_again_under_its_own_topic"),
        works(f"go_later::{AGAIN}", "go_later::the_level_that_a_listener_asks_for_is_honoured"),
        works(f"node_later::{AGAIN}"),
    ),
    Row(
        "dead letters",
        works("retry::after_sixteen_retries_a_message_is_a_dead_letter_and_comes_no_more"),
        works(f"go_later::{DEAD}", "go_later::an_orderly_consumer_gives_a_message_up_to_the_dead_letters"),
        works(f"node_later::{DEAD}"),
    ),
    Row(
        "transactions",
        works(
            "transactions::what_is_committed_is_seen_once_and_what_is_rolled_back_never",
            "transactions::a_producer_that_does_not_know_is_asked_and_its_answer_counts",
        ),
        works("go_later::transactions_end_as_their_producer_says_at_once_or_when_it_is_asked"),
        Cannot("it has no transactional producer"),
    ),
    Row(
        "delay levels",
        works("delay::delayed_messages_come_once_to_the_queue_they_were_sent_to_and_never_early"),
        works(f"go_later::{DELAYED}"),
        works(f"node_later::{DELAYED}"),
    ),
    Row(
        "delivery at any time, and recall",
        works("timer::every_way_to_say_a_time_is_kept_and_a_recalled_message_never_comes"),
        Cannot("it knows delay levels only"),
        Cannot("it says the time in `__STARTDELIVERTIME`, which the original does not understand either"),
    ),
    Row(
        "requests with replies",
        works(f"request_reply::{REPLIES}"),
        works(f"go_replies::{REPLIES}"),
        Cannot("it has no such call"),
    ),
    Row(
        "message trace",
        works("client_features::a_traced_send_leaves_its_trace_in_the_topic_of_traces"),
        works("go_trace::the_trace_of_a_message_tells_of_its_sending_and_its_consumption"),
        Cannot("it has no such call"),
    ),
    Row(
        "namespaces",
        works(f"namespaces::{NAMESPACE}"),
        works(f"go::{NAMESPACE}"),
        works(f"node::{NAMESPACE}"),
    ),
    Row(
        "administration",
        works(
            "mqadmin::topic_list_shows_a_new_topic",
            "mqadmin::delete_topic_removes_it_from_broker_and_name_server",
        ),
        works("go::the_admin_client_creates_lists_and_deletes_topics_and_lists_groups"),
        Cannot("it has no admin client"),
    ),
)


def section() -> str:
    """The table as Markdown, with the reasons below it."""
    lines = ["| feature | " + " | ".join(CLIENTS) + " |", "| --- " * (1 + len(CLIENTS)) + "|"]
    reasons: list[str] = []
    for row in ROWS:
        cells = []
        for client, cell in zip(CLIENTS, row[1:], strict=True):
            word, reason = ("works", cell.but) if isinstance(cell, Works) else ("cannot", cell.because)
            if reason:
                reasons.append(f"{len(reasons) + 1}. {client}, {row.feature}: {reason}.")
                word += f" ({len(reasons)})"
            cells.append(word)
        lines.append(f"| {row.feature} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *reasons, ""])
