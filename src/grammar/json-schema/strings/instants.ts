// RFC 3339 dates, times and durations as regular expressions over the decoded text.

const LEAP_YEAR = "(?:(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26]))|(?:(?:0[48]|[2468][048]|[13579][26])00))";
export const DATE =
  "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))" +
  `|${LEAP_YEAR}-02-29)`;
export const TIME =
  "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
export const DATE_TIME = `${DATE}T${TIME}`;

/** Appendix A: only the next smaller unit may follow a unit. */
const COUNT = "[0-9]{1,9}";
const SECONDS = `${COUNT}S`;
const MINUTES = `${COUNT}M(?:${SECONDS})?`;
const CLOCK = `T(?:${COUNT}H(?:${MINUTES})?|${MINUTES}|${SECONDS})`;
const DAYS = `${COUNT}D`;
const MONTHS = `${COUNT}M(?:${DAYS})?`;
const YEARS = `${COUNT}Y(?:${MONTHS})?`;
export const DURATION = `P(?:(?:${YEARS}|${MONTHS}|${DAYS})(?:${CLOCK})?|${CLOCK}|${COUNT}W)`;
