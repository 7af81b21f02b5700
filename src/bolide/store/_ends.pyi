from bolide.store.ends_twin import encode_ends as encode_ends
