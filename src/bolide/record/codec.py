"""Records: encode one, look into one, split a batch.  Chooses the compiled module or its readable twin."""

from typing import TYPE_CHECKING

from bolide.compiled import use_compiled

if TYPE_CHECKING or not use_compiled("bolide.record._codec"):
    from bolide.record.codec_twin import (
        RecordHead,
        encode_record,
        inspect_record,
        split_batch,
        tags_code_of,
    )
else:
    from bolide.record._codec import (
        RecordHead,
        encode_record,
        inspect_record,
        split_batch,
        tags_code_of,
    )

__all__ = ["RecordHead", "encode_record", "inspect_record", "split_batch", "tags_code_of"]
