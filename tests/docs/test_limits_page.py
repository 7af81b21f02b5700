"""The page of limits says what the code does."""

import re
from pathlib import Path

import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from bolide.broker.config import BrokerConfig
from bolide.model import limits
from bolide.model.errors import ConfigError
from bolide.pipeline.option_table import Use
from bolide.pipeline.options import parse_options
from bolide.pipeline.write_options import WriteOptions, parse_write
from tests.docs import limits_page

SOURCES = Path(limits.__file__).parents[1]


def test_the_page_of_limits_is_written_from_the_table() -> None:
    assert limits_page.PAGE.read_text() == limits_page.rendered(), "`make fix` writes docs/limits.md again"


def test_a_setting_goes_up_to_the_limit_that_bounds_it_and_no_further() -> None:
    named = [
        (key, limit)
        for limit in limits.table().values()
        for key in limit.bounds
        if key in BrokerConfig.settings()
    ]
    assert len(named) == 5
    for key, limit in named:
        assert BrokerConfig().changed({key: str(limit)}).as_settings()[key] == str(limit)
        with pytest.raises(ConfigError, match=key):
            BrokerConfig().changed({key: str(limit + 1)})


def test_an_option_of_spark_goes_up_to_the_limit_that_bounds_it_and_no_further() -> None:
    named = [
        (key, limit)
        for limit in limits.table().values()
        for key in limit.bounds
        if key not in BrokerConfig.settings()
    ]
    of_writes = {"maxMessagesPerSecond"}
    assert {key for key, _ in named} == {"minPartitions", "maxBytesPerPull"} | of_writes
    for key, limit in named:
        parse = parse_write_options if key in of_writes else parse_options
        options = {"nameserver": "127.0.0.1:9876", "topic": "orders"}
        parse({**options, key: str(limit)})
        with pytest.raises(ConfigError, match=key):
            parse({**options, key: str(limit + 1)})


def parse_write_options(options: dict[str, str]) -> WriteOptions:
    return parse_write(options, StructType([StructField("body", BinaryType())]), Use.WRITE)


def test_no_other_number_has_the_name_of_a_limit() -> None:
    named = {
        name: str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        if path.parent.name != "limits"
        for name in re.findall(r"^(\w+)(?:: \S+)? = \d", path.read_text(), re.MULTILINE)
    }
    assert {name: path for name, path in named.items() if name in limits.table()} == {}
