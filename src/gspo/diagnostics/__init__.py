"""What a step did, as pure functions of tensors that give statistics which can be added.

lengths      fixed length buckets, the same for every run
clipping     UpdatedResponses; what the clip cut, by side, sign, length and minibatch
histogram    how far log s moved
calibration  a clip range from measured log s
refit        how that range follows the policy: the rules of `clip: auto`
exponent     how the spread of log s falls with length
bootstrap    intervals by resampling groups
rollouts     rewards, groups, lengths, and the engine gap

Names are those of docs/metrics.md. Sums are float64. No data gives None, never 0 or NaN.
"""
