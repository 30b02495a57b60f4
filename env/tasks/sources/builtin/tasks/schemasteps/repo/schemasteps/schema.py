"""Tables and their columns."""


class SchemaError(Exception):
    """The change does not fit the schema as it is."""


class Schema:
    """The tables of a database, without the data."""

    def __init__(self):
        self._tables = {}

    def create_table(self, table, *columns):
        """Add a table."""
        if table in self._tables:
            raise SchemaError("table {} exists".format(table))
        self._tables[table] = list(columns)

    def drop_table(self, table):
        """Remove a table."""
        self._columns(table)
        del self._tables[table]

    def add_column(self, table, column):
        """Add a column at the end of a table."""
        columns = self._columns(table)
        if column in columns:
            raise SchemaError("column {}.{} exists".format(table, column))
        columns.append(column)

    def rename_column(self, table, old, new):
        """Rename a column in its place."""
        columns = self._columns(table)
        if old not in columns:
            raise SchemaError("no column {}.{}".format(table, old))
        columns[columns.index(old)] = new

    def describe(self):
        """Return ``{table: [columns]}``."""
        return {table: list(columns) for table, columns in self._tables.items()}

    def _columns(self, table):
        try:
            return self._tables[table]
        except KeyError:
            raise SchemaError("no table {}".format(table)) from None
