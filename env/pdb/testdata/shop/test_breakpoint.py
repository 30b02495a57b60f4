def test_own_breakpoint():
    x = 41
    breakpoint()
    x += 1
    assert x == 42
