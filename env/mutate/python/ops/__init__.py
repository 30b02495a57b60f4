"""The operators, one module per group. Importing this package registers them; of two that make the same edit, the first wins."""
from ops import memory, kinds, constants, relational, arithmetic, indexing, calls, names, removal, shape, blocks  # noqa: F401
