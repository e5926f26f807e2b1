// What one check found. `wrong` means that policies or replies would be wrong, or that requests or jobs would fail.
// A `warning` leaves every reply right, but something is lost: speed, exact bits or a feature.

export type Status = "ok" | "warning" | "wrong";

export interface Finding {
  /** Short name of the check, such as "stop-ids". */
  check: string;
  status: Status;
  /** What was seen, in one line. */
  detail: string;
  /** What to change. null when everything is right. */
  advice: string | null;
}

export function ok(check: string, detail: string): Finding {
  return { check, status: "ok", detail, advice: null };
}

export function warning(check: string, detail: string, advice: string): Finding {
  return { check, status: "warning", detail, advice };
}

export function wrong(check: string, detail: string, advice: string): Finding {
  return { check, status: "wrong", detail, advice };
}

/** For people: a line, and a second one with what to change. */
export function findingLines({ check, status, detail, advice }: Finding): string[] {
  const line = `  ${status.padEnd(8)} ${check.padEnd(20)} ${detail}`;
  return advice === null ? [line] : [line, `${" ".repeat(32)}→ ${advice}`];
}
