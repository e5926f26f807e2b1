// One of a few, as radio buttons.
import type { ComponentChildren } from "preact";

export interface ChoiceProps<Value extends string> {
  legend: string;
  name: string;
  names: Record<Value, ComponentChildren>;
  values: readonly Value[];
  value: Value;
  onChange: (value: Value) => void;
}

export function Choice<Value extends string>({ legend, name, names, values, value, onChange }: ChoiceProps<Value>) {
  return (
    <fieldset class="choice">
      <legend>{legend}</legend>
      {values.map((one) => (
        <label key={one}>
          <input type="radio" name={name} checked={one === value} onChange={() => onChange(one)} />
          {names[one]}
        </label>
      ))}
    </fieldset>
  );
}
