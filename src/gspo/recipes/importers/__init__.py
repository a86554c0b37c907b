"""Recipes from other trainers' settings, and back, with an account of every setting.

found.py, report.py, draft.py       what stands in a file; what became of it; the recipe in the making
trl_, verl_, openrlhf_              one trainer each: _source (reads the file), _keys (names, defaults,
                                    why not), _in and _objective (to a recipe), _out (from a recipe)
python_values, shell_tokens, shell_words    files that are programs, read and never run
common, rewards                     what the three share
"""
