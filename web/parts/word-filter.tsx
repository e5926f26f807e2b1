// The filter of a list: every word must be in a row. It is in the address.
import { type Signal, useSignal } from "@preact/signals";
import { noteInQuery } from "../address.ts";

const NAME = "filter";

export function useWordFilter(): Signal<string> {
  return useSignal(new URLSearchParams(location.search).get(NAME) ?? "");
}

/** Whether every word of the filter, in any case, is in one of the parts. */
export function hasWords(parts: readonly string[], filter: string): boolean {
  const text = parts.join(" ").toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** `placeholder`: what can be looked for. */
export function WordFilter({ filter, placeholder }: { filter: Signal<string>; placeholder: string }) {
  return (
    <label class="number-field">
      <span>filter</span>
      <input
        type="search"
        value={filter.value}
        placeholder={placeholder}
        onInput={(event) => {
          filter.value = event.currentTarget.value;
          noteInQuery(NAME, filter.value);
        }}
      />
    </label>
  );
}
