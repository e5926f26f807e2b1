// A mistake that whoever starts the program can mend, in an option or in what it names: shown as one line, without a stack.

export class ConfigError extends Error {
  override name = "ConfigError";
}
