// Every page: its path, its name, and the key that goes there after "g". A page without a key is reached from others and
// has no place in the rail. src/api/web.route.ts answers the same paths.
import type { JSX } from "preact";
import { Access } from "./access.tsx";
import { Job } from "./job.tsx";
import { Lab } from "./lab.tsx";
import { Playground } from "./playground.tsx";
import { Policies } from "./policies.tsx";
import { Policy } from "./policy.tsx";
import { Serving } from "./serving.tsx";
import { Trajectory } from "./trajectory.tsx";

export interface PageRow {
  path: string;
  title: string;
  key: string | null;
  /** Reads the parts of the path with useRoute(). */
  component: () => JSX.Element;
}

export const PAGES: readonly PageRow[] = [
  { path: "/", title: "Play", key: "c", component: Playground },
  { path: "/policies", title: "Policies", key: "p", component: Policies },
  { path: "/policies/:id", title: "Policy", key: null, component: Policy },
  { path: "/serving", title: "Serving", key: "s", component: Serving },
  { path: "/access", title: "Access", key: "a", component: Access },
  { path: "/jobs/:id", title: "Job", key: null, component: Job },
  { path: "/jobs/:id/lab", title: "Loss lab", key: null, component: Lab },
  { path: "/jobs/:id/:group/:trajectory", title: "Try", key: null, component: Trajectory },
];
