// Creates a token. Its secret is shown once, here, and kept nowhere by the page.
import { useSignal } from "@preact/signals";
import { CopyButton } from "../parts/copy-button.tsx";
import { postJson } from "../server.ts";
import { messageOf } from "../session.ts";
import { LIFETIMES, SCOPE_NOTES, SCOPES, type TokenRow } from "./token-row.ts";

const DAY_S = 86_400;

export function NewToken({ onMade }: { onMade: () => void }) {
  const made = useSignal<(TokenRow & { token: string }) | null>(null);
  const problem = useSignal<string | null>(null);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const days = LIFETIMES[Number(form.get("lifetime"))]!.days;
    const workspace = String(form.get("workspace")).trim();
    const scopes = form.getAll("scope");
    made.value = null;
    problem.value = scopes.length === 0 ? "Choose at least one scope: a token without any may do nothing." : null;
    if (problem.value !== null) return;
    try {
      made.value = await postJson("/tokens", {
        name: String(form.get("name")).trim(),
        scopes,
        ...(days === null ? {} : { lifetime_s: days * DAY_S }),
        ...(workspace === "" ? {} : { workspace }),
      });
      onMade();
    } catch (error) {
      problem.value = messageOf(error);
    }
  };
  return (
    <section class="panel" aria-label="New token">
      <h2>Create a token</h2>
      <form class="row" onSubmit={submit}>
        <label class="number-field">
          <span>name</span>
          <input name="name" required maxLength={128} autocomplete="off" placeholder="who will use it" />
        </label>
        <fieldset class="choice">
          <legend>scopes</legend>
          {SCOPES.map((scope) => (
            <label key={scope}>
              <input type="checkbox" name="scope" value={scope} defaultChecked={scope === "inference"} />
              {scope}
            </label>
          ))}
        </fieldset>
        <label class="number-field">
          <span>lifetime</span>
          <select name="lifetime">
            {LIFETIMES.map(({ label }, i) => (
              <option key={label} value={i} selected={i === 1}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <label class="number-field">
          <span>workspace</span>
          <input name="workspace" autocomplete="off" placeholder="its own" />
        </label>
        <button type="submit" class="primary">
          Create
        </button>
      </form>
      <ul class="muted hints">
        {SCOPES.map((scope) => (
          <li key={scope}>
            <b>{scope}</b>: {SCOPE_NOTES[scope]}.
          </li>
        ))}
        <li>
          <b>workspace</b>: whose policies and jobs it sees. Left empty, it gets a workspace of its own.
        </li>
      </ul>
      <p class="problem" role="alert">
        {problem.value}
      </p>
      <div role="status">{made.value !== null && <Secret name={made.value.name} token={made.value.token} />}</div>
    </section>
  );
}

function Secret({ name, token }: { name: string; token: string }) {
  const line = `export FLYWHEEL_API_KEY=${token}`;
  const curl = `curl -s ${location.origin}/v1/models -H "Authorization: Bearer $FLYWHEEL_API_KEY"`;
  return (
    <div class="secret">
      <p>
        The token <b>{name}</b> is shown once. Copy it now.{" "}
        <CopyButton text={token} what="the token" label="copy the token" />
      </p>
      <pre>{`${line}\n${curl}`}</pre>
    </div>
  );
}
