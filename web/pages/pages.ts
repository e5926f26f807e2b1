// Every page: its path, its name, and the key that goes there after "g". A page without a key is reached from others and
// has no place in the rail. src/api/web.route.ts answers the same paths. All but the playground are loaded when they are shown.
import type { JSX } from "preact";
import { lazy } from "../parts/lazy.tsx";
import { Playground } from "./playground.tsx";

export interface PageRow {
  path: string;
  title: string;
  key: string | null;
  /** Reads the parts of the path with useRoute(). */
  component: () => JSX.Element;
}

export const PAGES: readonly PageRow[] = [
  { path: "/", title: "Play", key: "c", component: Playground },
  {
    path: "/policies",
    title: "Policies",
    key: "p",
    component: lazy(async () => (await import("./policies.tsx")).Policies),
  },
  {
    path: "/policies/:id",
    title: "Policy",
    key: null,
    component: lazy(async () => (await import("./policy.tsx")).Policy),
  },
  {
    path: "/jobs",
    title: "Jobs",
    key: "j",
    component: lazy(async () => (await import("./jobs.tsx")).Jobs),
  },
  {
    path: "/serving",
    title: "Serving",
    key: "s",
    component: lazy(async () => (await import("./serving.tsx")).Serving),
  },
  { path: "/access", title: "Access", key: "a", component: lazy(async () => (await import("./access.tsx")).Access) },
  {
    path: "/jobs/:id",
    title: "Job",
    key: null,
    component: lazy(async () => (await import("./job.tsx")).Job),
  },
  {
    path: "/jobs/:id/lab",
    title: "Loss lab",
    key: null,
    component: lazy(async () => (await import("./lab.tsx")).Lab),
  },
  {
    path: "/jobs/:id/:group",
    title: "Group",
    key: null,
    component: lazy(async () => (await import("./group.tsx")).Group),
  },
  {
    path: "/jobs/:id/:group/:trajectory",
    title: "Rollout",
    key: null,
    component: lazy(async () => (await import("./trajectory.tsx")).Trajectory),
  },
];
