"""What the same recorded rollouts would have done under other objectives and clip ranges.

record      the responses of a step, as tensors
own         the run's own objective and the range in force at each step
candidates  what is compared: from the command line, or the default set
totals      what one candidate did, as sums that add over steps
compare     every candidate over every step of a run folder
picture     cut share and kept weight against the range, as an HTML page

Reads the run folder alone and evaluates the real objective functions. Log-probs are replayed as
they were recorded: another range would have moved the policy elsewhere, and no replay shows that.
"""
