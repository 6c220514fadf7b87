"""The tree of a function's body: its nodes' places in the source, and what they say."""

from tools.cuda.body import Body, component, declarators, operands, plain, walk
from tools.cuda.source import Source

TEXT = """// é
__global__ void k(int* y) {
  int a = 1, *p = y, b[2];
  CUDA_KERNEL_LOOP(i, 4) y[i] = ((threadIdx . x + "é"[0]));
}
"""


def body():
    source = Source(TEXT, "x.cu", {})
    return Body(source, source.functions[0])


def test_each_node_has_its_place_in_the_source():
    tree = body()
    names = [node for node in walk(tree.root) if node.type == "identifier"]
    assert len(names) == 8
    for node in names:
        start, end = tree.place(node)
        assert TEXT[start:end] == tree.of(node)


def test_a_kernel_loop_is_a_while_and_a_string_is_blank():
    tree = body()
    kinds = {node.type for node in walk(tree.root)}
    assert "while_statement" in kinds and not tree.tree.has_error
    assert "é" not in "".join(tree.of(node) for node in walk(tree.root))


def test_expressions_are_taken_apart():
    tree = body()
    value = next(n for n in walk(tree.root) if n.type == "assignment_expression").child_by_field_name("right")
    left, sign, right = operands(plain(value))
    assert (component(tree, left), sign, right.type) == ("threadIdx.x", "+", "subscript_expression")
    assert component(tree, right) == "" and operands(right) == (None, "", None)


def test_declarators_have_names_and_values():
    tree = body()
    declaration = next(node for node in walk(tree.root) if node.type == "declaration")
    read = [(tree.of(name), value and tree.of(value)) for _, name, value in declarators(declaration)]
    assert read == [("a", "1"), ("p", "y"), ("b", None)]
