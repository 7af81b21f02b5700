"""A schema given to a read chooses columns and nothing else."""

import pytest
from pyspark.sql.types import StructField, StructType

from bolide.arrow import batches, columns_twin
from bolide.arrow.batches import make_batch
from bolide.model.errors import ConfigError
from bolide.pipeline.options import parse_options
from bolide.pipeline.schema import (
    COLUMNS,
    arrow_schema,
    check_native_schema,
    check_schema,
    native_schema,
    whole_schema,
)


def chosen(*names: str, nullable: bool = True) -> StructType:
    return StructType([StructField(name, COLUMNS[name], nullable) for name in names])


def test_any_columns_in_any_order_can_be_chosen() -> None:
    check_schema(whole_schema())
    check_schema(chosen("body", "topic"))


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        (StructType([StructField("value", COLUMNS["body"])]), "no column 'value'; it has topic, brokerName"),
        (StructType([StructField("body", COLUMNS["topic"])]), "body is binary, not string: cast it"),
        (chosen("tags", nullable=False), "leave NOT NULL out"),
        (chosen("tags", "tags"), "twice"),
    ],
)
def test_what_a_schema_cannot_do_is_said(schema: StructType, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        check_schema(schema)


def test_columns_are_chosen_by_a_schema_or_by_the_option() -> None:
    options = parse_options({"nameserver": "h:1", "subscribe": "orders", "columns": "body,tags"})
    check_schema(whole_schema(options), options)
    check_native_schema(native_schema(["body", "tags"]), ["body", "tags"])
    with pytest.raises(ConfigError, match="a schema and the option columns contradict each other"):
        check_schema(chosen("body"), options)
    with pytest.raises(ConfigError, match="a schema and the option columns contradict each other"):
        check_native_schema(chosen("body"), ["body", "tags"])
    with pytest.raises(ConfigError, match="did you mean body"):
        check_native_schema(chosen("body"), ["boddy"])


def test_an_empty_batch_is_a_batch() -> None:
    builder = columns_twin.ColumnBuilder("b", list(COLUMNS))
    batch = make_batch(arrow_schema(whole_schema()), builder.rows, builder.take())
    batch.validate(full=True)
    assert batch.num_rows == 0


def test_clients_and_spark_have_the_same_columns() -> None:
    assert batches.schema_of(None).equals(arrow_schema(whole_schema()))
