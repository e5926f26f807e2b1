// The title of the browser's tab: that of the page, after what the tab has to tell.
import { effect, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

const page = signal("");
/** Stands before the page's title; "" is nothing. */
export const titleNews = signal("");

effect(() => {
  const parts = [titleNews.value, page.value, "Flywheel"];
  document.title = parts.filter((part) => part !== "").join(" · ");
});

export function useTitle(title: string): void {
  useEffect(() => {
    page.value = title;
  }, [title]);
}
