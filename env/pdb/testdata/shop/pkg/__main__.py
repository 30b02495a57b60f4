from pkg.prices import Price, total

print("package total", total([Price("a", 1), Price("b", 2)]))
