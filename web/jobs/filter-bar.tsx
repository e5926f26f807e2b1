// Fields that choose which groups are shown.
import { useRef } from "preact/hooks";
import { useShortcuts } from "../keys.ts";
import { bound, type Filter } from "./filter.ts";

export interface FilterBarProps {
  filter: Filter;
  /** Verdicts that occur. */
  verdicts: readonly string[];
  onChange: (change: Partial<Filter>) => void;
}

export function FilterBar({ filter, verdicts, onChange: set }: FilterBarProps) {
  const text = useRef<HTMLInputElement>(null);
  useShortcuts([{ keys: "/", what: "search the groups", run: () => text.current?.focus() }]);
  const options = [...new Set([...verdicts, ...(filter.verdict === "" ? [] : [filter.verdict])])].sort();
  return (
    <search class="row filter-bar">
      <label>
        verdict{" "}
        <select value={filter.verdict} onChange={(event) => set({ verdict: event.currentTarget.value })}>
          <option value="">all</option>
          {options.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <NumberBound name="reward from" value={filter.least} onChange={(least) => set({ least })} />
      <NumberBound name="to" value={filter.most} onChange={(most) => set({ most })} />
      <NumberBound name="tokens from" value={filter.shortest} onChange={(shortest) => set({ shortest })} />
      <NumberBound name="up to" value={filter.longest} onChange={(longest) => set({ longest })} />
      <label>
        <span class="sr-only">Text in tasks and rollouts</span>
        <input
          ref={text}
          type="search"
          placeholder="text  ( / )"
          value={filter.text}
          onInput={(event) => set({ text: event.currentTarget.value })}
        />
      </label>
    </search>
  );
}

function NumberBound(props: { name: string; value: number | null; onChange: (value: number | null) => void }) {
  return (
    <label>
      {props.name}{" "}
      <input
        type="number"
        step="any"
        value={props.value ?? ""}
        // at every key: drawing the page in between would take away what was not told yet
        onInput={(event) => props.onChange(bound(event.currentTarget.value))}
      />
    </label>
  );
}
