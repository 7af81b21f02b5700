from bolide.arrow.columns_twin import ColumnBuilder as ColumnBuilder
from bolide.arrow.columns_twin import LogFilter as LogFilter
