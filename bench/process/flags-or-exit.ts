// The flags of a benchmark, or the end of the program with what is wrong and how to use it.

export function flagsOrExit<Flags>(read: (words: string[]) => Flags, usage: string): Flags {
  try {
    return read(process.argv.slice(2));
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`);
    process.exit(2);
  }
}
