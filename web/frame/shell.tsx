// The frame around every page: the rail, the state of the server, the banner, the help dialog and the shortcuts that work
// everywhere.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { JobNotices } from "../jobs/job-notices.tsx";
import { useShortcuts } from "../keys.ts";
import { PAGES } from "../pages/pages.ts";
import { forgetAll } from "../playground/keeping.ts";
import { useLocation, useRoute } from "../router.ts";
import { facts, may, me } from "../server-facts.ts";
import { signOut } from "../session.ts";
import { nextTheme, theme } from "../theme.ts";
import { Banner } from "./banner.tsx";
import { Help } from "./help.tsx";
import { NotFound } from "./not-found.tsx";
import { ServerState } from "./server-state.tsx";

export function Shell() {
  const location = useLocation();
  const { pattern } = useRoute();
  const page = PAGES.find(({ path }) => path === pattern);
  const Page = page?.component;
  const isHelpOpen = useSignal(false);
  const account = useRef<HTMLDivElement>(null);
  const toggleHelp = () => {
    account.current?.hidePopover();
    isHelpOpen.value = !isHelpOpen.value;
  };
  const isFirst = useRef(true);
  useEffect(() => {
    // whoever follows a link reads on in the page; the playground moves the focus to its box
    if (!isFirst.current) document.getElementById("content")?.focus();
    isFirst.current = false;
  }, [location.path]);
  const toggleTheme = () => {
    theme.value = nextTheme(theme.value);
  };
  const leave = () => {
    const isSession = me.value?.session === true;
    void forgetAll();
    if (location.path === "/") location.route("/", true); // the chat of the address is gone
    void signOut(isSession);
  };
  useShortcuts([
    ...PAGES.filter(({ key }) => key !== null).map(({ key, title, path }) => ({
      keys: `g ${key}`,
      what: `go to ${title}`,
      run: () => location.route(path),
    })),
    { keys: "t", what: "change the theme", run: toggleTheme },
    { keys: "?", what: "show this list", run: toggleHelp },
  ]);
  return (
    <div class="shell">
      <a class="skip" href="#content">
        Skip to content
      </a>
      <nav class="rail" aria-label="Pages">
        <a class="brand" href="/" aria-label="Flywheel, playground">
          <span aria-hidden="true">◎</span> Flywheel
        </a>
        {PAGES.filter(({ key }) => key !== null).map(({ path, title }) => (
          <a key={path} href={path} aria-current={isHere(location.path, path) ? "page" : undefined}>
            {title}
          </a>
        ))}
        <span class="spring" />
        <button type="button" class="account-button" popovertarget="account">
          Account
        </button>
        <div id="account" class="account" popover="auto" ref={account}>
          <a href="/docs" target="_blank" rel="noreferrer">
            API
          </a>
          <button type="button" class="quiet" onClick={toggleTheme} title="Change the theme (t)">
            Theme: {theme.value}
          </button>
          <button type="button" class="quiet" onClick={toggleHelp} title="Shortcuts (?)">
            Shortcuts
          </button>
          <button type="button" class="quiet" onClick={leave} title={me.value?.name}>
            Sign out
          </button>
        </div>
      </nav>
      <div class="frame">
        <Banner />
        <ServerState />
        {may("training") && facts.value?.features.training === true && <JobNotices />}
        <main id="content" tabIndex={-1}>
          {Page === undefined ? <NotFound /> : <Page />}
        </main>
      </div>
      <Help isOpen={isHelpOpen.value} onClose={toggleHelp} />
    </div>
  );
}

/** A page's own parts belong to it: /policies/x is among the policies. */
function isHere(path: string, page: string): boolean {
  return page === "/" ? path === "/" : path === page || path.startsWith(`${page}/`);
}
