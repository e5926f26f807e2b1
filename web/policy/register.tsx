// Makes a policy that begins as the unchanged base model.
import { useSignal } from "@preact/signals";
import { models } from "../models.ts";
import { postJson } from "../server.ts";
import { messageOf } from "../session.ts";

export function Register({ onMade }: { onMade: () => void }) {
  const problem = useSignal<string | null>(null);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const name = String(new FormData(form).get("name")).trim();
    try {
      await postJson("/preview/models", { project: "playground", name, base_model: models.value[0]?.id });
      form.reset();
      problem.value = null;
      onMade();
    } catch (error) {
      problem.value = messageOf(error);
    }
  };
  return (
    <form class="row" onSubmit={submit}>
      <label class="number-field">
        <span>new policy</span>
        <input name="name" required placeholder="my-agent" autocomplete="off" />
      </label>
      <button type="submit">Create</button>
      <span class="problem" role="alert">
        {problem.value}
      </span>
    </form>
  );
}
