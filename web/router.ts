// The address of the page, and which page it means. Links inside the page are followed without loading it again.
import { computed, signal } from "@preact/signals";

/** Path and query. What a page notes there (address.ts) does not change it. */
const url = signal(here());
/** The paths of all pages, with placeholders: "/jobs/:id". */
const patterns = signal<readonly string[]>([]);

export interface Place {
  url: string;
  /** Without a slash at its end. */
  path: string;
  query: Record<string, string>;
  /** `replaces`: without an entry in the history. */
  route: (to: string, replaces?: boolean) => void;
}

const place = computed((): Place => {
  const { pathname, searchParams } = new URL(url.value, location.origin);
  return {
    ...{ url: url.value, path: pathname.replace(/\/+$/, "") || "/" },
    ...{ query: Object.fromEntries(searchParams), route },
  };
});

/** The component is drawn again when the address changes. */
export function useLocation(): Place {
  return place.value;
}

export interface Route {
  /** The pattern that the address fits; null if none does. */
  pattern: string | null;
  params: Readonly<Record<string, string>>;
}

const found = computed((): Route => {
  for (const pattern of patterns.value) {
    const params = match(pattern, place.value.path);
    if (params !== null) return { pattern, params };
  }
  return { pattern: null, params: {} };
});

export function useRoute(): Route {
  return found.value;
}

/** Values of the placeholders of `pattern` ("/jobs/:id"); null if the path is another one. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const [wanted, given] = [pattern.split("/"), path.split("/")];
  if (wanted.length !== given.length) return null;
  const values: Record<string, string> = {};
  for (const [i, part] of wanted.entries()) {
    const value = given[i]!;
    if (part.startsWith(":") && value !== "") values[part.slice(1)] = decoded(value);
    else if (part !== value) return null;
  }
  return values;
}

/** A path that was typed may be no valid encoding. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function route(to: string, replaces = false): void {
  if (replaces) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  url.value = to;
  if (!replaces) scrollTo(0, 0);
}

export function startRouter(paths: readonly string[]): void {
  patterns.value = paths;
  addEventListener("popstate", () => {
    url.value = here();
  });
  addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const link = event.composedPath().find((node) => node instanceof HTMLAnchorElement && node.href !== "");
    if (!(link instanceof HTMLAnchorElement) || link.origin !== location.origin) return;
    // a place in the page, another tab, a file
    if (link.getAttribute("href")!.startsWith("#") || link.target !== "" || link.download !== "") return;
    event.preventDefault();
    route(link.pathname + link.search);
  });
}

function here(): string {
  return location.pathname + location.search;
}
