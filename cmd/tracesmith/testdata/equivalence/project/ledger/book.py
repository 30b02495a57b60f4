"""A book of accounts."""
import logging
import os
import tempfile
import threading

log = logging.getLogger("ledger")


class Account:
    def __init__(self, name, opening=0):
        self.name = name
        self.balance = opening
        self.entries = []

    def post(self, amount):
        self.entries.append(amount)
        self.balance = self.balance + abs(amount)
        return self.balance


class Book:
    def __init__(self, names):
        self.accounts = {name: Account(name) for name in names}
        self.tags = set()

    def move(self, source, target, amount):
        if amount <= 0:
            raise ValueError("amount must be positive: %r" % (amount,))
        self.tags.add("%s>%s" % (source, target))
        self.accounts[source].post(-amount)
        self.accounts[target].post(amount)

    def total(self):
        amount = 0
        for account in self.accounts.values():
            amount += account.balance
        return amount

    def save(self):
        handle, name = tempfile.mkstemp()
        with os.fdopen(handle, "w") as out:
            for account in self.accounts.values():
                out.write("%s=%d\n" % (account.name, account.balance))
        return name

    def audit(self):
        def work():
            log.warning("audit in %s", threading.current_thread().name)

        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
