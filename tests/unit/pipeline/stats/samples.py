"""A report with known figures, as it could have come from Spark, and a reader of the page that is made of it."""

from dataclasses import replace
from html.parser import HTMLParser

from bolide.pipeline.stats.figures import (
    LagFigures,
    LagSample,
    NameFigures,
    QueueFigures,
    QueueLagFigures,
    Report,
    SizeFigures,
    Spread,
    TopicFigures,
    WindowFigures,
)

NOON_MS = 1_700_049_600_000
"""2023-11-15 12:00 UTC."""

WINDOW_MS = 60_000

ORDERS = TopicFigures(
    topic="orders",
    messages=12_345,
    bytes=3 * 1024 * 1024,
    first_ms=NOON_MS + 5,
    last_ms=NOON_MS + 179_000,
    size=Spread(200.0, 1_900.0, 2_000),
    latency=Spread(3.0, 40.0, 1_500),
    negative=12,
    latency_min=-35,
    packed=7,
    bad_bodies=1,
    retried=0,
    untimed=0,
    keyed=12_000,
    tagged=12_345,
    keys_there=4_321,
    tags_there=2,
    windows=[
        WindowFigures(NOON_MS, 10_000, 2_000_000, Spread(3.0, 40.0, 1_500), 12, 1.2, "customer-7", 900),
        WindowFigures(NOON_MS + 2 * WINDOW_MS, 2_345, 1_145_728, None, 0, 1.1, None, 0),
    ],
    queues=[
        QueueFigures("broker-a", 0, 7_345, 2_000_000, 7_345 / 12_345),
        QueueFigures("broker-a", 1, 5_000, 1_145_728, 5_000 / 12_345),
    ],
    keys=[
        NameFigures("customer-7", 900, 90_000, 900 / 12_345),
        NameFigures("customer-9", 30, 3_000, 30 / 12_345),
    ],
    tags=[NameFigures("PAID", 12_000, 3_000_000, 12_000 / 12_345)],
    sizes=[
        SizeFigures(128, 256, 12_000, 2_000_000),
        SizeFigures(256, 512, 0, 0),
        SizeFigures(512, 1024, 345, 9),
    ],
)

NOTHING = replace(
    ORDERS,
    messages=0,
    bytes=0,
    negative=0,
    packed=0,
    bad_bodies=0,
    keyed=0,
    tagged=0,
    first_ms=None,
    last_ms=None,
    size=None,
    latency=None,
    latency_min=None,
    windows=(),
    keys=(),
    tags=(),
    sizes=(),
    queues=[QueueFigures("broker-a", 0, 0, 0, 0.0)],
)

LAG = LagFigures("billing", "orders", 45, 90_000, [QueueLagFigures("broker-a", 0, 100, 145, 45, 90_000)])

HISTORY = [
    LagSample(NOON_MS + number * 600_000, "billing", "orders", behind, behind * 100)
    for number, behind in enumerate((10, 2_000, 45))
]

REPORT = Report(
    made_ms=NOON_MS + 3_600_000,
    source="the brokers of 127.0.0.1:9876",
    since_ms=None,
    until_ms=None,
    window_ms=WINDOW_MS,
    topics=[ORDERS],
    damaged=0,
    lags=[LAG],
    lag_history=HISTORY,
    notes=[],
)


class Page(HTMLParser):
    """What is in a page: its elements, its words, and whether it is well formed."""

    VOID = frozenset({"meta", "br"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.words += f"{data} "

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]
