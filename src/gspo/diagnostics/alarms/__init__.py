"""Alarms: rules over the recorded numbers of a run, the same ones live and on an old run folder.

history    what the rules look at: plain floats by metric name, and events
rule       a rule, and what it finds
learning   rules about reward, lengths, entropy, groups
trust      rules about the ratio and its clip
bell       when a finding becomes an alarm; `alarms_over` runs all of it over a recorded run

A rule that lacks a metric finds nothing: "not measured" is neither fine nor bad. Thresholds have
their reasons beside them; docs/alarms.md explains every rule.
"""
