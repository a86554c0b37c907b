"""Memory and time of a run before it is started.

source      what is planned: a recipe, a model folder, a name in the local Hugging Face cache
headers     what weight files hold, by their headers
shape       what is counted of a model: parameters by kind, sizes of a layer (torch's meta device)
method      full training, LoRA, a quantised base; bytes a parameter
workload    tokens of a micro-batch, rows that are sampled together
parts       a part, its stages, and what all parts follow from
training    parts of the update        activations  what a layer keeps
sampling    parts of the engine        overhead     the process, the heap's holes
memory      all parts, the fullest stage, fits or not: `plan_memory`
devices     the table of devices       machine      this one, measured
suggest     what to change             speed        time by a roofline     measured  from a run
report      all of it as JSON
"""
