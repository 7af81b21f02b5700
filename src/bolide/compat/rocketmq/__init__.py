"""The modules of rocketmq-client-python, for code that moves here: `rocketmq.` becomes `bolide.compat.rocketmq.`.

`client` has the classes, `exceptions` their errors, `consts` the names of properties.  What the old client does is kept
as far as it is a promise; where it hangs, loses bytes or forgets, this does not.  What this client cannot do raises
`NotSupported` where it is asked for, and nothing is left out silently.
"""
