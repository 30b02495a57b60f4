"""The mutation operators. Importing this package registers them in the order of the imports. If two operators make the
same edit, the first one is used."""
from ops import memory, kinds, constants, relational, arithmetic, indexing, calls, names, removal, shape, blocks  # noqa: F401
