value = 0
