"""One run of `bolide pipeline replay`: found again by its id or planned anew, shown, or sent.

What a replay is and does is in `bolide.pipeline.replay`; here are words, tables and signals.
"""

import asyncio
import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import typer

from bolide.cli.ask import confirm
from bolide.cli.messages_out import beginning
from bolide.cli.outcome import ExitCode, Partly, Refused
from bolide.cli.output import counted, say, write_json, write_line, write_table
from bolide.cli.progress import status_line
from bolide.cli.since import format_moment
from bolide.cli.spans import format_bytes, format_span
from bolide.cli.spark_run import stop_signals
from bolide.model.errors import BolideError, NothingFound

if TYPE_CHECKING:
    from bolide.pipeline.access import ClusterAccess
    from bolide.pipeline.replay.folder import Done
    from bolide.pipeline.replay.plan import Asked, Replay
    from bolide.pipeline.replay.summary import Summary

TAGS_SHOWN = 20


@dataclass
class Session:
    """Spark, started when it is first needed."""

    master: str
    settings: Mapping[str, str]
    spark: Any = None
    _ending: ExitStack = field(default_factory=ExitStack)

    def get(self) -> Any:
        from bolide.pipeline.session import for_messages, session_for

        if self.spark is None:
            say(f"starting Spark ({self.master})")
            settings = {**for_messages(self.master), **self.settings}
            self.spark = self._ending.enter_context(
                session_for("bolide replay", master=self.master, settings=settings)
            )
        return self.spark

    def check_there(self, archive: str) -> None:
        """Said before Spark starts, of folders of this machine: all else is for Spark to look up."""
        from bolide.pipeline.folders import local_folder, may_be_elsewhere

        if may_be_elsewhere(archive, self.settings) or not self.master.startswith("local"):
            return
        if any(sign in archive for sign in "*?[{"):
            return
        if (folder := local_folder(archive)) is not None and not folder.exists():
            raise NothingFound(
                f"{archive} is not there: --from-archive is the folder of an archive, or Parquet"
            )

    def __enter__(self) -> Self:
        self._ending.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._ending.__exit__(kind, error, trace)


class ReplayWork:
    """One replay: found again by its id, or planned anew."""

    def __init__(
        self,
        cluster: "ClusterAccess",
        session: Session,
        asked: "Asked",
        replay_id: str | None,
        checkpoint: str | None,
        now_ms: int,
    ) -> None:
        from bolide.pipeline.replay.folder import ReplayFolder

        self._cluster, self._session, self._asked = cluster, session, asked
        self._id = replay_id or f"{stamp(now_ms)}-{secrets.token_hex(2)}"
        self.folder = ReplayFolder.of(self._id, checkpoint)
        self.folder.check_free()
        found = self.folder.replay()
        self.is_new = found is None
        self.replay: Replay = self._planned(now_ms) if found is None else self._same(found)
        self.done: Done = self.folder.done()
        if not self.replay.slices:
            raise NothingFound("there is nothing to replay: no message is meant")
        if self.is_new and (near := asyncio.run(self._near())) is not None:
            say(f"no broker has the topic {asked.to}, and a message would make it: did you mean {near}?")

    async def _near(self) -> str | None:
        """Another topic that may be meant; who shows an archive needs no brokers, and hears nothing."""
        from bolide.admin.topics import near_topic

        try:
            async with self._cluster.admin() as servers:
                return await near_topic(servers, self._asked.to)
        except BolideError:
            return None

    def _planned(self, now_ms: int) -> "Replay":
        from bolide.pipeline.replay.plan import tasks_of
        from bolide.pipeline.replay.source import plan_archive, plan_topics

        asked, writer = self._asked, f"replay-{self._id}-{secrets.token_hex(8)}"
        if asked.archive is None:
            found = plan_topics(self._cluster, asked, self._id, writer, now_ms)
        else:
            self._session.check_there(asked.archive)
            found = plan_archive(self._session.get(), asked, self._id, writer, now_ms)
        if not found.slices:
            return found
        return replace(found, tasks=tasks_of(asked.rate, self._session.get().sparkContext.defaultParallelism))

    def _same(self, found: "Replay") -> "Replay":
        if differs := self._asked.differs(found.asked):
            raise Refused(
                f"the replay {self._id} was begun with another {', '.join(differs)}: say the same as then to go on"
                " with it, or give another --id"
            )
        return found

    # ---- looking -------------------------------------------------------------------------------------------

    def show(self, *, skip_expired: bool, as_json: bool) -> None:
        from bolide.pipeline.replay.source import check_same, slices_frame
        from bolide.pipeline.replay.summary import summarise

        if self.done.slices == self.replay.slices:
            raise NothingFound(f"the replay {self._id} has sent everything: {self.done.sent} messages")
        check_same(self._cluster, self.replay, skip_expired=skip_expired)
        frame = slices_frame(
            self._session.get(),
            self._cluster,
            self.replay,
            self.done.slices,
            self.replay.slices,
            skip_expired=skip_expired,
        )
        found = summarise(frame, self.replay)
        if as_json:
            write_json(self._summary_json(found))
            return
        self._write_summary(found)
        say(f"{counted(found.messages, 'message')} would go to {self._asked.to}. Nothing was sent")

    def _write_summary(self, found: "Summary") -> None:
        from bolide.pipeline.replay.summary import SHOWN_MAX

        if found.first_ms is not None and found.last_ms is not None:
            write_line(f"stored   {format_moment(found.first_ms)} to {format_moment(found.last_ms)}")
        write_line(f"messages {found.messages}, {format_bytes(found.bytes)} of bodies")
        if (takes_ms := found.takes_ms(self._asked.rate)) is not None:
            write_line(f"takes    {format_span(takes_ms)} at {self._asked.rate} a second")
        if found.left_out:
            write_line(
                f"left out {counted(found.left_out, 'message')} that cannot be sent: without a body that can be"
                " read, or such as no client sends"
            )
        if self.done.slices:
            write_line(f"behind   {counted(self.done.sent, 'message')} that this replay has sent before")
        for title, counts in (("TOPIC", found.topics), ("TAG", found.tags), ("DAY", found.days)):
            write_line()
            rows = list(counts.items())[: TAGS_SHOWN if title == "TAG" else SHOWN_MAX]
            write_table((title, "MESSAGES"), [(name or "-", count) for name, count in rows])
        write_line()
        write_table(
            ("STORED", "TOPIC", "ID", "TAG", "KEYS", "BODY"),
            [
                (
                    format_moment(one["stored_ms"]),
                    one["topic"],
                    one["id"],
                    one["tag"] or "-",
                    " ".join(one["keys"]) or "-",
                    beginning(one["body"]),
                )
                for one in found.examples
            ],
        )

    def _summary_json(self, found: "Summary") -> dict[str, Any]:
        return {
            "id": None if self.is_new else self._id,
            "preview": True,
            "to": self._asked.to,
            "messages": found.messages,
            "bytes": found.bytes,
            "left_out": found.left_out,
            "sent_before": self.done.sent,
            "first_ms": found.first_ms,
            "last_ms": found.last_ms,
            "takes_ms": found.takes_ms(self._asked.rate),
            "topics": dict(found.topics),
            "tags": dict(found.tags),
            "days": dict(found.days),
            "examples": [{**one, "body": beginning(one["body"])} for one in found.examples],
        }

    # ---- sending -------------------------------------------------------------------------------------------

    def run(self, *, yes: bool, skip_expired: bool, as_json: bool) -> None:
        from bolide.pipeline.declared.run import Stop
        from bolide.pipeline.replay.run import Broken, Target
        from bolide.pipeline.replay.run import run as run_replay

        if self.done.slices == self.replay.slices:
            say(f"the replay {self._id} was finished before, and sends nothing more")
            self._tell_end(as_json=as_json)
            return
        confirm(
            f"Send {self._left()} to {self._asked.to}{self._pace()}?",
            yes=yes,
            stakes=f"every group of {self._asked.to} gets these messages",
            otherwise="nothing was sent",
        )
        spark, stop = self._session.get(), Stop()
        target = Target(self._cluster, self._asked.rate, skip_expired)
        say(
            f"replay {self._id}: {self._left()} to {self._asked.to}{self._pace()}; kept in {self.folder.path}"
        )
        with stop_signals(stop), status_line() as show:

            def progress(done: "Done") -> None:
                self.done = done
                show(
                    f"{done.sent + done.stored_before} sent, {done.slices} of {self.replay.slices} slices done"
                )

            try:
                run_replay(self.replay, self.folder, spark, target, stop=stop, progress=progress)
            except Broken:
                pass
        self._tell_end(as_json=as_json)

    def _tell_end(self, *, as_json: bool) -> None:
        is_finished = self.done.slices == self.replay.slices
        if as_json:
            write_json(
                {
                    "id": self._id,
                    "preview": False,
                    "to": self._asked.to,
                    "finished": is_finished,
                    "sent": self.done.sent,
                    "stored_before": self.done.stored_before,
                    "refused": self.done.refused,
                    "refused_named": self.done.named,
                    "slices": self.replay.slices,
                    "slices_done": self.done.slices,
                    "folder": str(self.folder.path),
                }
            )
        for one in self.done.named:
            say(one)
        if more := self.done.refused - len(self.done.named):
            say(f"and {more} more that cannot be sent")
        total = self.done.sent + self.done.stored_before
        if is_finished:
            say(f"{counted(total, 'message')} sent to {self._asked.to}")
            if self.done.refused:
                raise Partly(f"{counted(self.done.refused, 'message')} cannot be sent; all others are")
            return
        say(f"stopped after {counted(total, 'message')}: the same with --id {self._id} goes on")
        raise typer.Exit(ExitCode.INTERRUPTED)

    def _left(self) -> str:
        left = self.replay.messages - self.done.sent - self.done.stored_before - self.done.refused
        most = "up to " if self._asked.selection.leaves_out and self._asked.archive is None else ""
        return f"{most}{counted(max(0, left), 'message')}"

    def _pace(self) -> str:
        return "" if self._asked.rate is None else f" at {self._asked.rate} a second"


def stamp(now_ms: int) -> str:
    """A moment in a name.

    >>> stamp(0)
    '19700101-000000'
    """
    return format_moment(now_ms)[:19].replace("-", "").replace(":", "").replace("T", "-")
