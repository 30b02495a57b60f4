"""Prints what differs from machine to machine, if it is let."""
import getpass
import os
import random
import shutil
import sys
import threading
import time

from ledger import Book


def report(book):
    names = {"cash", "bank", "rent"}
    print("names", names)
    print("object", object(), book.move)
    print("hash", hash("ledger") % 1000, random.Random(3).random())
    print("who", getpass.getuser(), os.getuid(), os.getgid(), oct(os.umask(0o022)))
    print("where", os.getcwd(), sys.argv, shutil.get_terminal_size())
    print("zone", time.tzname, time.strftime("%H", time.gmtime(0)))
    print("threads", [t.name for t in threading.enumerate()])
    print("saved", book.save())
    return len(names)


if __name__ == "__main__":
    ledger = Book(["cash", "bank"])
    ledger.move("cash", "bank", 5)
    count = report(ledger)
    ledger.audit()
    try:
        line = input("go on? ")
    except EOFError:
        line = "no answer"
    print(line)
    sys.exit(count)
