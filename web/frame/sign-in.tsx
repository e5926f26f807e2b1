// The form for a token. Whoever comes by the link of the start line never sees it.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { type Keep, messageOf, signedOutBecause, signIn } from "../session.ts";

export function SignIn() {
  const error = useSignal<string | null>(null);
  const isBusy = useSignal(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    isBusy.value = true;
    error.value = null;
    try {
      await signIn(String(form.get("token")).trim(), form.get("keep") as Keep);
    } catch (thrown) {
      error.value = messageOf(thrown);
    } finally {
      isBusy.value = false;
    }
  };
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    field.current?.focus();
    return () =>
      queueMicrotask(() => {
        // the page that is shown now may have moved the focus already
        if (document.activeElement === document.body) document.getElementById("content")?.focus();
      });
  }, []);
  const problem = error.value ?? signedOutBecause.value;
  return (
    <main class="sign-in">
      <form onSubmit={submit}>
        <h1>Flywheel</h1>
        <p>This server wants a token.</p>
        <label for="token">Token</label>
        <div class="row">
          <input
            id="token"
            ref={field}
            name="token"
            type="password"
            placeholder="fw_…"
            autocomplete="off"
            spellcheck={false}
            required
            aria-describedby="sign-in-problem"
          />
          <button type="submit" class="primary" disabled={isBusy.value}>
            Enter
          </button>
        </div>
        <p id="sign-in-problem" class="problem" role="alert">
          {problem}
        </p>
        <fieldset>
          <legend>Keep it</legend>
          <label>
            <input type="radio" name="keep" value="tab" checked /> for this tab
          </label>
          <label>
            <input type="radio" name="keep" value="device" /> on this device
          </label>
        </fieldset>
        <p class="muted">
          No token? In a terminal: <code>flywheel open</code>
        </p>
      </form>
    </main>
  );
}
