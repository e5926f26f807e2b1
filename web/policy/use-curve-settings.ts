// The settings of the curves of a page. They are in the address; a change makes no entry in the history.
import { type ReadonlySignal, useSignal } from "@preact/signals";
import { noteQuery } from "../address.ts";
import { type CurveSettings, curveQuery, curveSettingsFrom } from "./curve-settings.ts";

export function useCurveSettings(): [ReadonlySignal<CurveSettings>, (part: Partial<CurveSettings>) => void] {
  const settings = useSignal(curveSettingsFrom(location.search));
  const change = (part: Partial<CurveSettings>) => {
    settings.value = { ...settings.value, ...part };
    noteQuery(curveQuery(settings.value, location.search));
  };
  return [settings, change];
}
