from bolide.record.codec_twin import RecordHead as RecordHead
from bolide.record.codec_twin import encode_record as encode_record
from bolide.record.codec_twin import inspect_record as inspect_record
from bolide.record.codec_twin import split_batch as split_batch
from bolide.record.codec_twin import tags_code_of as tags_code_of
