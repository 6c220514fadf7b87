"""What follows from facts."""

import z3

from cuffi.proving.queries import Linear, Queries, leaves

A, B, C, N = (z3.Int(name) for name in "abcn")


def test_products_with_lemmas():
    queries = Queries()
    for one in (A >= 0, A < N, B >= 0, B < C, C > 0):
        queries.fact(one)
    outside = [A * C + B >= N * C + 1, A < N]
    asked = Queries().is_impossible(outside)
    queries.products += [(A, C), (N, C)]
    assert not asked and queries.is_impossible(outside) and queries.ask(outside) == "never"
    model = queries.ask([A * C + B == N * C - 1])
    assert model != "never" and model.eval(A * C + B - N * C).as_long() == -1


def test_what_is_valid_on_a_path():
    queries = Queries()
    queries.fact(A >= 0)
    assert queries.valid(A + B > 0, [B > 0]) and not queries.valid(A + B > 0, [])


def test_facts_that_are_forgotten_do_not_count():
    queries = Queries()
    mark = queries.mark()
    queries.fact(A > 3)
    assert queries.valid(A > 2, [])
    queries.back_to(mark)
    queries.fact(A > 1)
    assert not queries.valid(A > 2, [])
    queries.without([A > 1])
    assert not queries.valid(A > 1, [])


def test_equal_products_are_one_variable():
    linear = Linear()
    solver = z3.Solver()
    solver.add(linear.of(A * B > 5), linear.of(B * A < 6))
    assert solver.check() == z3.unsat and leaves(A * B + 1) == {"a", "b"}
