"""What `bolide pipeline init` writes: a pipeline that runs as it is against `bolide up`, and explains itself."""

YAML = """\
# A pipeline: sources are read, steps make tables of tables, sinks get the rows.
#
#   bolide pipeline check {file}      is it sound?  needs no server and no Spark
#   bolide pipeline explain {file}    the columns of every step
#   bolide pipeline run {file}        until Ctrl-C; with --once until all is read
#   bolide pipeline status {file}     how far has it come?
#
# Messages to try it with:
#
#   bolide send orders '{{"customer": "anna", "amount": 12.5}}' --tag PAID
#   bolide send orders '{{"customer": null, "amount": -1}}' --tag PAID

name: {name}
trigger: 2 seconds                # a batch every so often; or available-now
# nameserver: 127.0.0.1:9876      # what BOLIDE_NAMESERVER or NAMESRV_ADDR says, else this one, unless it is said
# checkpoint: checkpoints/{name}  # where a restart goes on from; ~/.bolide/pipelines/{name} unless it is said
# settings:                       # of Spark
#   spark.sql.shuffle.partitions: 4

sources:
  orders:
    topic: orders
    options:
      startingOffsets: earliest   # of a new pipeline; a restart goes on where it was

steps:
  parsed:
    sql: |
      SELECT msgId, tags, storeTimestamp,
             get_json_object(cast(body AS string), '$.customer') AS customer,
             cast(get_json_object(cast(body AS string), '$.amount') AS double) AS amount
      FROM orders
    expect:                       # rows for which a condition is false or null are counted, and ...
      known_tag: tags IN ('PAID', 'OPEN')                                     # ... go on: warn
      has_customer: {{condition: customer IS NOT NULL, action: quarantine}}   # ... are put aside
      positive: {{condition: amount > 0, action: quarantine}}                 # drop and fail are there, too

  receipts:
    sql: |
      SELECT to_json(struct(customer, amount)) AS body, 'RECEIPT' AS tags, array(msgId) AS keys
      FROM parsed WHERE tags = 'PAID'

sinks:
  archive:
    from: parsed
    format: parquet
    path: out/orders
  answers:
    from: receipts
    topic: receipts

quarantine:
  path: out/quarantine            # a folder for each step; or topic: bad-orders
"""

PYTHON = '''\
"""A pipeline in Python: the keys of the YAML form as arguments, and functions for steps.

    bolide pipeline run {file}
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bolide.pipeline import Pipeline

pipeline = Pipeline(
    "{name}",
    trigger="2 seconds",
    quarantine={{"path": "out/quarantine"}},
)
pipeline.source("orders", topic="orders", options={{"startingOffsets": "earliest"}})


@pipeline.step("orders", expect={{"positive": {{"condition": "amount > 0", "action": "quarantine"}}}})
def parsed(orders: DataFrame) -> DataFrame:
    body = F.col("body").cast("string")
    return orders.select(
        "msgId",
        "tags",
        F.get_json_object(body, "$.customer").alias("customer"),
        F.get_json_object(body, "$.amount").cast("double").alias("amount"),
    )


pipeline.sql("receipts", "SELECT to_json(struct(customer, amount)) AS body FROM parsed WHERE tags = 'PAID'")
pipeline.sink("archive", "parsed", format="parquet", path="out/orders")
pipeline.sink("answers", "receipts", topic="receipts")
'''
