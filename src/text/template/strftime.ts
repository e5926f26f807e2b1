// Python's strftime for templates that print the date, always in English and in local time.

const WEEKDAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");
const MONTHS = "January February March April May June July August September October November December".split(" ");
const COMPOUND: Readonly<Record<string, string>> = {
  c: "%a %b %e %H:%M:%S %Y",
  D: "%m/%d/%y",
  F: "%Y-%m-%d",
  R: "%H:%M",
  T: "%H:%M:%S",
  X: "%H:%M:%S",
  x: "%m/%d/%y",
};

/** Unknown directives stay as they are; "%-d" drops the leading zero. */
export function strftime(date: Date, format: string): string {
  return format.replace(/%(-?)([a-zA-Z%])/g, (directive, minus: string, letter: string) => {
    const compound = COMPOUND[letter];
    const text = compound ? strftime(date, compound) : write(date, letter);
    return minus === "" ? (text ?? directive) : (text?.replace(/^[0 ]+(?=.)/, "") ?? directive);
  });
}

function write(date: Date, letter: string): string | undefined {
  const two = (value: number): string => String(value).padStart(2, "0");
  const weekday = WEEKDAYS[date.getDay()]!;
  const month = MONTHS[date.getMonth()]!;
  const start = Date.UTC(date.getFullYear(), 0, 0);
  const dayOfYear = (Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) - start) / 86_400_000;
  const directives: Readonly<Record<string, string>> = {
    Y: String(date.getFullYear()),
    y: two(date.getFullYear() % 100),
    m: two(date.getMonth() + 1),
    d: two(date.getDate()),
    e: String(date.getDate()).padStart(2, " "),
    H: two(date.getHours()),
    I: two(date.getHours() % 12 || 12),
    p: date.getHours() < 12 ? "AM" : "PM",
    M: two(date.getMinutes()),
    S: two(date.getSeconds()),
    f: `${String(date.getMilliseconds()).padStart(3, "0")}000`,
    j: String(dayOfYear).padStart(3, "0"),
    A: weekday,
    a: weekday.slice(0, 3),
    w: String(date.getDay()),
    B: month,
    b: month.slice(0, 3),
    h: month.slice(0, 3),
    "%": "%",
  };
  return directives[letter];
}
