from bolide.arrow.rows_twin import IdSet as IdSet
from bolide.arrow.rows_twin import RowEncoder as RowEncoder
