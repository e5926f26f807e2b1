// A number with its name. An empty field is null.
import { useId } from "preact/hooks";

export interface NumberFieldProps {
  name: string;
  title: string;
  /** The title stands below the field, for those who have no pointer to hover with. */
  isExplained?: boolean;
  value: number | null;
  least?: number;
  most?: number;
  step?: number;
  placeholder?: string;
  onChange: (value: number | null) => void;
}

export function NumberField(props: NumberFieldProps) {
  const { name, title, isExplained = false, value, least, most, step, placeholder, onChange } = props;
  const id = useId();
  const field = (
    <label class="number-field" title={isExplained ? undefined : title}>
      <span>{name}</span>
      <input
        type="number"
        value={value ?? ""}
        min={least}
        max={most}
        step={step ?? 1}
        placeholder={placeholder}
        aria-describedby={isExplained ? id : undefined}
        onInput={({ currentTarget: field }) => {
          if (field.value === "") onChange(null);
          else if (Number.isFinite(field.valueAsNumber)) onChange(field.valueAsNumber);
        }}
      />
    </label>
  );
  if (!isExplained) return field;
  return (
    <div class="explained">
      {field}
      <span id={id} class="muted">
        {title}
      </span>
    </div>
  );
}
