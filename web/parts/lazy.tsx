// A page that is loaded when it is first shown.
import { signal } from "@preact/signals";
import { h, type JSX } from "preact";
import { useEffect } from "preact/hooks";

type Page = () => JSX.Element;

export function lazy(load: () => Promise<Page>): Page {
  const page = signal<{ component: Page } | null>(null);
  const hasFailed = signal(false);
  return function Lazy() {
    useEffect(() => {
      if (page.value !== null) return;
      hasFailed.value = false;
      load().then(
        (found) => {
          page.value = { component: found };
        },
        () => {
          hasFailed.value = true; // the server is gone, or has another version of the page
        },
      );
    }, []);
    if (page.value !== null) return h(page.value.component, {});
    return hasFailed.value ? <p class="problem">This page could not be loaded. Reload it.</p> : <p class="muted">…</p>;
  };
}
