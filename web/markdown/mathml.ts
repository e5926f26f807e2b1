// TeX → MathML elements. temml reads it and makes a tree; the elements are made from the tree, and only those that belong to
// mathematics. Loaded when there is mathematics.
import { type ComponentChildren, h, type JSX } from "preact";
import temml from "temml";

/** What temml makes, as far as it is used here. */
interface Node {
  type?: string;
  attributes?: Record<string, unknown>;
  classes?: string[];
  style?: Record<string, string>;
  children?: Node[];
  text?: string;
}

const ELEMENTS = new Set(
  "math mrow mi mn mo ms mtext mspace mfrac msqrt mroot mstyle mpadded mphantom menclose msub msup msubsup munder mover munderover mmultiscripts mprescripts none mtable mtr mtd".split(
    " ",
  ),
);
/** Addresses and scripts have other names. */
const ATTRIBUTES = new Set(
  "accent accentunder columnalign columnlines columnspacing depth display displaystyle fence form height largeop linebreak linethickness lspace mathbackground mathcolor mathsize mathvariant maxsize minsize movablelimits notation rowalign rowlines rowspacing rspace scriptlevel separator stretchy symmetric voffset width".split(
    " ",
  ),
);
/** In em and in points: a formula cannot cover the page. */
const MOST_SIZE: [number, number] = [40, 400];

/** Null if it is not TeX. */
export function mathOf(tex: string, isDisplay: boolean): JSX.Element | null {
  try {
    const options = { displayMode: isDisplay, throwOnError: true, trust: false, maxSize: MOST_SIZE };
    return elementOf(temml.__renderToMathMLTree(tex, options) as Node, 0) as JSX.Element;
  } catch {
    return null; // of temml's many errors each means that this cannot be read
  }
}

/** Elements inside one another. */
const DEEPEST = 100;

function elementOf(node: Node, depth: number): ComponentChildren {
  if (depth > DEEPEST) throw new RangeError("the formula is too deep");
  if (node.text !== undefined) return node.text;
  const children = (node.children ?? []).map((child) => elementOf(child, depth + 1));
  if (node.type === undefined || !ELEMENTS.has(node.type)) return children;
  const attributes = Object.entries(node.attributes ?? {}).filter(([name]) => ATTRIBUTES.has(name));
  const classes = (node.classes ?? []).join(" ");
  const props = { ...Object.fromEntries(attributes), ...(classes === "" ? {} : { class: classes }), style: node.style };
  return h(node.type, props as Record<string, unknown>, children);
}
