// Numbers, versions and addresses as people write them.

/** 1.2 GB, 340 MB, 12 kB; decimal, as disks and downloads are counted. */
export function bytesText(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** power;
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[power]}`;
}

/** 596 M, 7.2 B, 40 k. */
export function countText(count: number): string {
  for (const [unit, size] of [
    ["B", 1e9],
    ["M", 1e6],
    ["k", 1e3],
  ] as const) {
    if (count >= size) return `${count >= 100 * size ? Math.round(count / size) : (count / size).toFixed(1)} ${unit}`;
  }
  return String(count);
}

/** Whether a version such as "2.10.0+cu130" is below one such as "2.6". */
export function isOlder(version: string, oldest: string): boolean {
  const numbers = (text: string) => text.split(".").map((part) => Number.parseInt(part, 10) || 0);
  const [[major = 0, minor = 0], [oldestMajor = 0, oldestMinor = 0]] = [numbers(version), numbers(oldest)];
  return major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
}

// Which addresses only this machine can reach.
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}
