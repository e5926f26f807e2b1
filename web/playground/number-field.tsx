// A number with its name. An empty field is null.
export interface NumberFieldProps {
  name: string;
  title: string;
  value: number | null;
  least?: number;
  most?: number;
  step?: number;
  placeholder?: string;
  onChange: (value: number | null) => void;
}

export function NumberField({ name, title, value, least, most, step, placeholder, onChange }: NumberFieldProps) {
  return (
    <label class="number-field" title={title}>
      <span>{name}</span>
      <input
        type="number"
        value={value ?? ""}
        min={least}
        max={most}
        step={step ?? 1}
        placeholder={placeholder}
        onInput={({ currentTarget: field }) => {
          if (field.value === "") onChange(null);
          else if (Number.isFinite(field.valueAsNumber)) onChange(field.valueAsNumber);
        }}
      />
    </label>
  );
}
