from bolide.store.timer.filing_twin import file_plain as file_plain
