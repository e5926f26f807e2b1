"""Flywheel's trainer for GPUs: a task in, metrics and a PEFT folder out.

The server (TypeScript) keeps all job logic: it claims, tokenises, plans and publishes. This package does the
arithmetic of one task at a time. It is started by torchrun or by a command of the operator, and dials back to the
server over a socket (channel.py).
"""

PROTOCOL = 2
