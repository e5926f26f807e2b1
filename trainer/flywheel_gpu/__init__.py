"""The GPU process: samples tokens of one model for the server, which starts it and talks to it over a socket.

The server (TypeScript) decides what runs: admission, priorities, adapters, grammars, ends. This process decides which
rows run in a step, holds weights, keys and values, and chooses tokens. It knows token ids, never text, and no family
of models: the server describes the model.
"""

PROTOCOL = 2
