// How the curves are shown.
import { Choice } from "../parts/choice.tsx";
import { type CurveSettings, XS } from "./curve-settings.ts";

export interface CurveBarProps {
  settings: CurveSettings;
  onChange: (part: Partial<CurveSettings>) => void;
}

export function CurveBar({ settings: { x, smoothing, isLog, pattern }, onChange }: CurveBarProps) {
  return (
    <div class="row curve-bar">
      <Choice
        legend="Over"
        name="x"
        names={{ step: "steps", gradient_step: "gradient steps" }}
        values={XS}
        value={x}
        onChange={(value) => onChange({ x: value })}
      />
      <label class="number-field">
        <span>smooth {smoothing}</span>
        <input
          type="range"
          min={0}
          max={0.95}
          step={0.05}
          value={smoothing}
          onInput={(event) => onChange({ smoothing: event.currentTarget.valueAsNumber })}
        />
      </label>
      <label>
        <input type="checkbox" checked={isLog} onChange={(event) => onChange({ isLog: event.currentTarget.checked })} />
        log scale
      </label>
      <label class="number-field">
        <span>metrics (regex)</span>
        <input
          value={pattern}
          placeholder="the main ones"
          spellcheck={false}
          onInput={(event) => onChange({ pattern: event.currentTarget.value })}
        />
      </label>
    </div>
  );
}
