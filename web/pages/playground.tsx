// Talk to a model.
import { useTitle } from "../parts/use-title.ts";

export function Playground() {
  useTitle("Playground");
  return <h1>Playground</h1>;
}
