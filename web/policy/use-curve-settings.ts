// The settings of the curves of a page. They are in the address; a change makes no entry in the history.
import { type ReadonlySignal, useSignal } from "@preact/signals";
import { type CurveSettings, curveQuery, curveSettingsFrom } from "./curve-settings.ts";

export function useCurveSettings(): [ReadonlySignal<CurveSettings>, (part: Partial<CurveSettings>) => void] {
  const settings = useSignal(curveSettingsFrom(location.search));
  const change = (part: Partial<CurveSettings>) => {
    settings.value = { ...settings.value, ...part };
    const query = curveQuery(settings.value, location.search);
    history.replaceState(history.state, "", location.pathname + (query === "" ? "" : `?${query}`));
  };
  return [settings, change];
}
