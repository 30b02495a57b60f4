"""Run the steps a schema has not seen yet."""


class Runner:
    """Applies steps to one schema and remembers which."""

    OPERATIONS = ("create_table", "drop_table", "add_column", "rename_column")

    def __init__(self, schema):
        self._schema = schema
        self._done = []

    @property
    def done(self):
        """Numbers of the steps that were run."""
        return list(self._done)

    def pending(self, steps):
        """Return the steps that were not run yet."""
        return [step for step in steps if step.number not in self._done]

    def upgrade(self, steps):
        """Run all pending steps; return how many there were."""
        pending = self.pending(steps)
        for step in pending:
            self._apply(step)
            self._done.append(step.number)
        return len(pending)

    def _apply(self, step):
        for operation, arguments in step.commands:
            if operation not in self.OPERATIONS:
                raise ValueError("step {}: cannot {}".format(step.number, operation))
            getattr(self._schema, operation)(*arguments)
