// Numbers, times and sizes as people read them.

/** 3 significant digits, no exponent for everyday sizes: 0.0123, 1.5, 12,345. */
export function number(value: number, digits = 3): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "–" : value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e9)) return value.toExponential(1).replaceAll("-", "−");
  return formatOf(size >= 1000 ? 0 : digits)
    .format(value)
    .replace("-", "−");
}

const formats = new Map<number, Intl.NumberFormat>();

/** `digits` are significant ones; 0: whole numbers. Making a format takes a hundred times as long as using it. */
function formatOf(digits: number): Intl.NumberFormat {
  const options = digits === 0 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: digits };
  if (!formats.has(digits)) formats.set(digits, new Intl.NumberFormat("en-US", options));
  return formats.get(digits)!;
}

/** A share of one: 4 %, 0.3 %, 99.9 %. */
export function percent(share: number): string {
  if (!Number.isFinite(share)) return "–";
  const value = share * 100;
  if (value > 0 && value < 0.1) return "< 0.1 %";
  if (value > 99.9 && value < 100) return "> 99.9 %";
  const digits = (value > 0 && value < 1) || (value > 99 && value < 100) ? 1 : 0;
  return `${value.toFixed(digits)} %`;
}

/** 5 ms, 1.8 s, 3 min, 3 h 12. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.round(ms / 60_000);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${String(minutes % 60).padStart(2, "0")}`;
  return `${Math.round(hours / 24)} days`;
}

export function ago(then: string, now: number): string {
  const ms = now - Date.parse(then);
  return ms < 5000 ? "just now" : `${duration(ms).replace(/\.\d/, "")} ago`;
}

/** 17 Nov 2026, 14:05, where the reader is. */
export function moment(then: string): string {
  return MOMENT.format(new Date(then));
}

const MOMENT = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

export function bytes(count: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = count;
  let unit = 0;
  for (; size >= 999.5 && unit < units.length - 1; unit++) size /= 1000;
  return `${unit === 0 || size >= 99.5 ? Math.round(size) : number(size, 2)} ${units[unit]}`;
}

/** "1 token", "2 tokens". */
export function count(amount: number, noun: string): string {
  return `${number(amount)} ${noun}${amount === 1 ? "" : "s"}`;
}
