// What a page notes of its state in the query of its address, so that a link shares it.

/** Notes the state of the page in its address: no entry in the history, and nothing is drawn again. `query` is without "?". */
export function noteQuery(query: string): void {
  history.replaceState(history.state, "", location.pathname + (query === "" ? "" : `?${query}`));
}

/** The same for one name of the query; "" takes it out. */
export function noteInQuery(name: string, value: string): void {
  const query = new URLSearchParams(location.search);
  if (value === "") query.delete(name);
  else query.set(name, value);
  noteQuery(query.toString());
}
