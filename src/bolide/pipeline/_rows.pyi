from bolide.pipeline.rows_twin import IdSet as IdSet
from bolide.pipeline.rows_twin import RowEncoder as RowEncoder
