// Python's strftime for templates that print the date, always in English and in local time.

const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];

/** Unknown directives stay as they are; "%-d" drops the leading zero. */
export function strftime(date: Date, format: string): string {
  return format.replace(/%(-?)([a-zA-Z%])/g, (directive, minus: string, letter: string) => {
    const text = write(date, letter);
    if (text === null) return directive;
    return minus === "" ? text : text.replace(/^[0 ]+(?=.)/, "");
  });
}

function write(date: Date, letter: string): string | null {
  const two = (value: number): string => String(value).padStart(2, "0");
  switch (letter) {
    case "Y":
      return String(date.getFullYear());
    case "y":
      return two(date.getFullYear() % 100);
    case "m":
      return two(date.getMonth() + 1);
    case "d":
      return two(date.getDate());
    case "e":
      return String(date.getDate()).padStart(2, " ");
    case "H":
      return two(date.getHours());
    case "I":
      return two(date.getHours() % 12 || 12);
    case "p":
      return date.getHours() < 12 ? "AM" : "PM";
    case "M":
      return two(date.getMinutes());
    case "S":
      return two(date.getSeconds());
    case "j":
      return String(dayOfYear(date)).padStart(3, "0");
    case "A":
      return WEEKDAYS[date.getDay()]!;
    case "a":
      return WEEKDAYS[date.getDay()]!.slice(0, 3);
    case "B":
      return MONTHS[date.getMonth()]!;
    case "b":
    case "h":
      return MONTHS[date.getMonth()]!.slice(0, 3);
    case "F":
      return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
    case "T":
      return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
    case "%":
      return "%";
    default:
      return null;
  }
}

function dayOfYear(date: Date): number {
  const start = Date.UTC(date.getFullYear(), 0, 1);
  return (Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) - start) / 86_400_000 + 1;
}
