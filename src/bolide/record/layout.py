"""The fields of a record, in order.  Open this beside a hexdump of a commit-log segment.

All numbers are big-endian.  Positions hold for IPv4 hosts; an IPv6 host is 12 bytes longer and shifts what follows.

    bytes  position  field
        4         0  total size of the record
        4         4  magic: MAGIC_V1, or MAGIC_V2 when the topic length has two bytes
        4         8  CRC-32 of the stored body, top bit cleared
        4        12  queue id
        4        16  flag: the application's, never interpreted
        8        20  queue offset: number of the message in its queue
        8        28  log offset: position of the record in the whole log
        4        36  sysFlag: `model.message.SysFlag`
        8        40  born timestamp: the producer's clock
     8/20        48  born host: address, then port in 4 bytes
        8        56  store timestamp: the broker's clock
     8/20        64  store host
        4        72  reconsume times
        8        76  log offset of the prepared message, for a committed transaction
        4        84  body length
        n        88  body
      1/2            topic length
        n            topic
        2            length of the properties
        n            properties: name 0x01 value 0x02 …

The properties may end with a checksum of the whole record (RocketMQ: enabledAppendPropCRC), always as its last pair:

    bytes  field
        8  __CRC32#
        1  0x01
       10  CRC-32 of all bytes of the record before these 20, top bit cleared: decimal, least significant digit first
        1  0x02

The end of a segment is filled by a blank record: its size (4) and MAGIC_BLANK (4); the bytes behind stay as they are.
"""

MAGIC_V1 = 0xDAA320A7
MAGIC_V2 = 0xDAA320AB
MAGIC_BLANK = 0xCBD43194

BLANK_BYTES = 8
"""A record needs this much room behind it, so that a blank record always fits."""

FIXED_BYTES = 91
"""Size of a record with IPv4 hosts, version 1, without body, topic and properties."""

HOST_V4_BYTES = 8
HOST_V6_BYTES = 20

BATCH_ITEM_FIXED_BYTES = 22
"""An element of a batch body: size 4, magic 4, CRC 4, flag 4, body length 4, …, properties length 2."""

CRC_MASK = 0x7FFFFFFF

RECORD_CHECKSUM_NAME = b"__CRC32#\x01"
RECORD_CHECKSUM_BYTES = 20
"""What the checksum of a whole record takes of its properties."""

CHECK_LENGTHS = 0
"""A record is believed when its lengths agree with each other and with the total."""
CHECK_SUMS = 1
"""... and its body and, where it has a checksum of its own, the whole of it are what was written."""
CHECK_SEALED = 2
"""... which every record must have (RocketMQ: forceVerifyPropCRC)."""
