// Faults of files and folders that the operator can mend, in one line with what to do. Commands that know more about a file say it
// themselves (OperatorError).

const FIXES: Readonly<Record<string, string>> = {
  EACCES: "run the command as the owner, or choose another place",
  EPERM: "run the command as the owner, or choose another place",
  EROFS: "choose a place that can be written",
  ENOSPC: "free some space, or choose another place",
  EDQUOT: "free some space, or choose another place",
  ENOTDIR: "give a folder",
  EISDIR: "give a file",
};

/** null: the fault is of another kind. */
export function fileFault(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const { code, syscall, message } = error as NodeJS.ErrnoException;
  if (code === undefined || syscall === undefined || !Object.hasOwn(FIXES, code)) return null;
  return `${message}: ${FIXES[code]}`;
}
