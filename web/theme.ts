// Light, dark, or what the system says. The style sheet does the rest with light-dark().
import { effect, signal } from "@preact/signals";

export const THEMES = ["auto", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const STORAGE_KEY = "flywheel.theme";

export const theme = signal<Theme>(stored());

function stored(): Theme {
  const found = localStorage.getItem(STORAGE_KEY);
  return THEMES.find((name) => name === found) ?? "auto";
}

const system = matchMedia("(prefers-color-scheme: dark)");

/** Whether the system is dark. What is drawn with colours, not styled, follows it. */
export const isSystemDark = signal(system.matches);
system.onchange = () => {
  isSystemDark.value = system.matches;
};

export function nextTheme(current: Theme): Theme {
  return THEMES[(THEMES.indexOf(current) + 1) % THEMES.length]!;
}

export function applyTheme(): void {
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
    localStorage.setItem(STORAGE_KEY, theme.value);
  });
}
