from bolide.pipeline.columns_twin import ColumnBuilder as ColumnBuilder
from bolide.pipeline.columns_twin import LogFilter as LogFilter
