import os


def hold(number):
    value = number * 7919
    return value


def test_hold():
    assert hold(int(os.environ["NUMBER"])) > 0


if __name__ == "__main__":
    hold(int(os.environ["NUMBER"]))
