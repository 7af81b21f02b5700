from bolide.pipeline.columns_twin import ColumnBuilder as ColumnBuilder
