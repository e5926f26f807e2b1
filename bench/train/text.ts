// The text that both sides train on. A token depends only on its position. torch_step.py has the same formula.

export function tokenAt(sequence: number, position: number, vocabulary: number): number {
  return 3 + ((sequence * 7919 + position * 104729 + ((position * position) % 977)) % (vocabulary - 3));
}
