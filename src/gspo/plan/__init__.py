"""Memory and time of a run before it is started.

shape       what is counted of a model: parameters by kind, sizes of a layer (torch's meta device)
source      what is planned: a recipe, a model folder, a name in the local Hugging Face cache
method      full training, LoRA, a quantised base; bytes a parameter
workload    tokens of a micro-batch, rows that are sampled together
training    parts of the update        sampling    parts of the engine
memory      all parts, the largest stage, fits or not: `plan_memory`
devices     the table of devices       machine     this one, measured
suggest     what to change             speed       time by a roofline, or from a run
"""
