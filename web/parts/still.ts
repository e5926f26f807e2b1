// A component that is drawn again only when one of its properties is another one, or a signal that it reads.
import { Component, type ComponentChild, type FunctionComponent, h } from "preact";

export function still<Props extends object>(inner: FunctionComponent<Props>): new (props: Props) => Component<Props> {
  return class extends Component<Props> {
    override shouldComponentUpdate(next: Props): boolean {
      const names = Object.keys({ ...this.props, ...next }) as (keyof Props)[];
      return names.some((name) => !Object.is(this.props[name], next[name]));
    }

    override render(): ComponentChild {
      return h(inner as FunctionComponent<object>, this.props);
    }
  };
}
