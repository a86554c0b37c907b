"""A file keeps to one idea and a function to one page."""

import ast

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60  # the docstring is not counted
MAX_LOOP_LINES = 120  # trainer/loop.py reads from top to bottom in the order things happen
MAX_EXAMPLE_LINES = 60


def function_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    docstring = ast.get_docstring(function, clean=False)
    total = (function.end_lineno or function.lineno) - function.lineno + 1
    return total - (docstring.count("\n") + 1 if docstring else 0)


def test_docstrings_do_not_count_as_lines_of_a_function():
    (function,) = ast.parse('def f():\n    """One.\n\n    Two.\n    """\n    return 1\n').body
    assert isinstance(function, ast.FunctionDef)
    assert function_lines(function) == 2


def test_no_file_is_longer_than_400_lines(sources):
    lengths = {source.name: source.text.count("\n") for source in sources}
    assert {name: n for name, n in lengths.items() if n > MAX_FILE_LINES} == {}


def test_no_function_is_longer_than_60_lines(sources):
    too_long = [
        f"{source.name}:{node.lineno} {node.name}: {function_lines(node)} lines"
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and function_lines(node)
        > (MAX_LOOP_LINES if source.name == "trainer/loop.py" else MAX_FUNCTION_LINES)
    ]
    assert too_long == []


def test_no_example_is_longer_than_60_lines(root):
    lengths = {path.name: path.read_text().count("\n") for path in root.glob("examples/*.py")}
    assert {name: n for name, n in lengths.items() if n > MAX_EXAMPLE_LINES} == {}
