from bolide.wire.frame_twin import encode_send_answers as encode_send_answers
from bolide.wire.frame_twin import scan_sends as scan_sends
