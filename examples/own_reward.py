"""A reward function of one's own: the text after the last ">" must be the answer.

    gspo train own-data verifier.function=examples/own_reward.py:reward ...

A function gets `prompt`, `completion` and the data's columns, each if it has a parameter of that
name. It returns a number, or a dict with the number under "reward" and parts beside it. What it
raises costs that response its verdict; it is never a reward of 0.
"""

from __future__ import annotations


def reward(prompt: str, completion: str, answer: str) -> float:
    """1 when the final answer is right, else 0."""
    _, mark, final_answer = completion.rpartition(">")
    return float(mark == ">" and final_answer == answer)


if __name__ == "__main__":
    for completion in (
        "760=13;421=07;890=17;311=05;>5773",
        "760=13;421=02;890=17;311=05;>5723",
        "5773",
    ):
        print(f"reward {reward('3847+1926=', completion, '5773'):.0f} for {completion}")
