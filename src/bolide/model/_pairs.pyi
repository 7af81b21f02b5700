from bolide.model.pairs_twin import parse_properties as parse_properties
from bolide.model.pairs_twin import with_pairs as with_pairs
