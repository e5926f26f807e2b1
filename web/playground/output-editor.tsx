// Structured output: the kind, its text, and the error at its place.
import { useEffect, useRef } from "preact/hooks";
import { Choice } from "../parts/choice.tsx";
import { isAboutConstraint, lineAndColumn, localProblem, type Place, serverProblem } from "./constraint.ts";
import { OUTPUT_KINDS, type OutputKind } from "./settings.ts";
import { change, newest, settings } from "./state.ts";

const NAMES: Record<OutputKind, string> = {
  text: "text",
  json: "JSON schema",
  regex: "regex",
  choice: "choice",
  grammar: "grammar",
};

const EXAMPLES: Record<OutputKind, string> = {
  text: "",
  json: '{\n  "type": "object",\n  "properties": { "answer": { "type": "string" } },\n  "required": ["answer"]\n}',
  regex: "\\d{1,3}",
  choice: "yes\nno",
  grammar: 'root ::= "yes" | "no"',
};

export function OutputEditor() {
  const { output, constraints } = settings.value;
  return (
    <div class="output-editor">
      <Choice
        legend="Output"
        name="output"
        names={NAMES}
        values={OUTPUT_KINDS}
        value={output}
        onChange={(kind) => change({ output: kind, constraints: { [kind]: EXAMPLES[kind], ...constraints } })}
      />
      {output !== "text" && <Editor kind={output} text={constraints[output] ?? ""} />}
    </div>
  );
}

function Editor({ kind, text }: { kind: OutputKind; text: string }) {
  const field = useRef<HTMLTextAreaElement>(null);
  const place = localProblem(kind, text) ?? refusal(kind, text);
  const offset = place?.offset ?? null;
  useEffect(() => {
    // Shows the place without taking the focus from whoever writes.
    if (offset !== null && document.activeElement !== field.current)
      field.current?.setSelectionRange(offset, offset + 1);
  }, [offset]);
  return (
    <div class="editor">
      <label class="sr-only" for="constraint">
        {NAMES[kind]}
      </label>
      <textarea
        id="constraint"
        ref={field}
        class="mono"
        rows={Math.min(14, Math.max(2, text.split("\n").length))}
        spellcheck={false}
        value={text}
        aria-invalid={place !== null}
        aria-describedby="constraint-problem"
        onInput={(event) =>
          change({ constraints: { ...settings.value.constraints, [kind]: event.currentTarget.value } })
        }
      />
      <div id="constraint-problem" role="alert">
        {place !== null && <Problem text={text} place={place} />}
      </div>
    </div>
  );
}

/** The line of the error, with a mark below its place. */
function Problem({ text, place }: { text: string; place: Place }) {
  if (place.offset === null) return <p class="problem">{place.message}</p>;
  const { line, column } = lineAndColumn(text, place.offset);
  return (
    <div class="problem">
      <pre aria-hidden="true">
        {text.split("\n")[line - 1]}
        {"\n"}
        {" ".repeat(column - 1)}▲
      </pre>
      Line {line}, column {column}: {place.message}
    </div>
  );
}

/** What the server said against this very text; null if nothing. */
function refusal(kind: OutputKind, text: string): Place | null {
  const refused = newest.value.find(
    (one) =>
      isAboutConstraint(one?.exchange.error?.param) &&
      one?.turn.sent.output === kind &&
      one.turn.sent.constraint === text,
  );
  return refused === undefined || refused === null ? null : serverProblem(kind, text, refused.exchange.error!.message);
}
