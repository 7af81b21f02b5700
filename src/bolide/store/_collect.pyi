from bolide.store.collect_twin import collect as collect
from bolide.store.collect_twin import first_by_code as first_by_code
from bolide.store.collect_twin import first_wanted as first_wanted
