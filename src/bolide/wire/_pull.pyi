from bolide.wire.pull_twin import encode_found as encode_found
from bolide.wire.pull_twin import scan_pull as scan_pull
