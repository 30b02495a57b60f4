import unittest

from ledger.book import Account


class AccountTest(unittest.TestCase):
    def test_opening(self):
        self.assertEqual(Account("cash", 7).balance, 7)

    def test_draw(self):
        account = Account("cash", 7)
        account.post(-3)
        self.assertEqual(account.balance, 4, account)


if __name__ == "__main__":
    unittest.main()
