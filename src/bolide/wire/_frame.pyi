from bolide.wire.frame_twin import blank as blank
from bolide.wire.frame_twin import count_marks as count_marks
from bolide.wire.frame_twin import encode_send_answers as encode_send_answers
from bolide.wire.frame_twin import scan_sends as scan_sends
