// Tables with aligned columns. The first row is the heading.

export function printTable(rows: readonly (readonly string[])[]): void {
  for (const line of tableLines(rows)) console.log(line);
}

export function tableLines(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) => {
    const cells = row.map((cell, column) => cell.padEnd(widths[column]!));
    return cells.join("  ").trimEnd();
  });
}
