// Reads a Dockerfile: its stages, and the instructions of each.

export interface Instruction {
  /** In capitals. */
  name: string;
  /** `--key=value` in front of the arguments. */
  flags: Record<string, string>;
  /** The rest, on one line. */
  text: string;
}

export interface Stage {
  /** After `AS`; the last stage needs none. */
  name: string | null;
  base: string;
  instructions: Instruction[];
}

export interface Dockerfile {
  /** Default values of the arguments before the first stage. */
  args: Record<string, string>;
  stages: Stage[];
}

export function readDockerfile(source: string): Dockerfile {
  const file: Dockerfile = { args: {}, stages: [] };
  for (const instruction of readInstructions(source)) {
    const { name, text } = instruction;
    const stage = file.stages.at(-1);
    if (name === "FROM") {
      const [, base, as] = /^(\S+)(?: AS (\S+))?$/.exec(text)!;
      file.stages.push({ name: as ?? null, base: expand(base!, file.args), instructions: [] });
    } else if (stage !== undefined) {
      stage.instructions.push(instruction);
    } else {
      const [, key, value] = /^(\w+)=(\S+)$/.exec(text)!;
      file.args[key!] = value!;
    }
  }
  return file;
}

function readInstructions(source: string): Instruction[] {
  const lines = source
    .replace(/^\s*#.*\n/gm, "")
    .replace(/\\\n\s*/g, "")
    .split("\n")
    .filter((line) => line.trim() !== "");
  return lines.map((line) => {
    const [, name, flags, text] = /^([A-Z]+)((?: --\S+)*) (.*)$/.exec(line)!;
    const pairs = [...flags!.matchAll(/--([\w-]+)=(\S+)/g)].map(([, key, value]) => [key!, value!]);
    return { name: name!, flags: Object.fromEntries(pairs), text: text! };
  });
}

function expand(text: string, args: Record<string, string>): string {
  return text.replace(/\$\{(\w+)\}/g, (whole, name: string) => args[name] ?? whole);
}
