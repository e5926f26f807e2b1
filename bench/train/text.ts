// The text both sides train on: fixed tokens that only depend on their place. torch_step.py has the same formula.

export function tokenAt(sequence: number, position: number, vocabulary: number): number {
  return 3 + ((sequence * 7919 + position * 104729 + ((position * position) % 977)) % (vocabulary - 3));
}
