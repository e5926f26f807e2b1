// The account that a PostgreSQL server runs under. It refuses to run as root, so there it is "nobody".

import { execFileSync } from "node:child_process";

/** null: our own account. */
export type Owner = { uid: number; gid: number } | null;

export function findOwner(): Owner {
  if (process.getuid?.() !== 0) return null;
  const id = (flag: string) => Number(execFileSync("id", [flag, "nobody"], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

/** Whether the account can use the files in a folder. */
export function mayEnter(folder: string, owner: Owner): boolean {
  if (owner === null) return true;
  try {
    execFileSync("test", ["-x", folder], { ...owner, cwd: "/" });
    return true;
  } catch {
    return false;
  }
}
