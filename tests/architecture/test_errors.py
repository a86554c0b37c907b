"""An error says what it was given: its message carries a value."""

import ast

MIN_SHARE = 0.9  # a few refusals have no value to show


def error_names(sources) -> set[str]:
    """GspoError and every class in the tree that descends from it."""
    bases = {
        node.name: {ast.unparse(base) for base in node.bases}
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef)
    }
    names = {"GspoError"}
    while more := {name for name, parents in bases.items() if parents & names} - names:
        names |= more
    return names


def carries_a_value(call: ast.Call) -> bool:
    """Some argument is more than a fixed text."""
    nodes = [node for argument in call.args + call.keywords for node in ast.walk(argument)]
    return any(isinstance(node, ast.FormattedValue | ast.Name) for node in nodes)


def test_the_rule_by_example():
    def call(text: str) -> ast.Call:
        return next(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))

    assert carries_a_value(call("RecipeError(f'low is {low}')"))
    assert carries_a_value(call("RecipeError(message)"))
    assert not carries_a_value(call("RecipeError('low is wrong')"))


def test_nine_of_ten_raises_carry_a_value(sources):
    names = error_names(sources)
    raises = [
        (f"{source.name}:{node.lineno}", carries_a_value(node.exc))
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and ast.unparse(node.exc.func) in names
    ]
    bare = [place for place, has_value in raises if not has_value]
    assert len(raises) > 10, "the rule no longer finds the raises it is about"
    assert len(bare) <= (1 - MIN_SHARE) * len(raises), bare
