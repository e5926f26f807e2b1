// The list of shortcuts that work at the moment.
import { useEffect, useRef } from "preact/hooks";
import { shortcuts } from "../keys.ts";

export function Help({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (isOpen) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isOpen]);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={() => isOpen && onClose()}>
      <h2 id="help-title">Shortcuts</h2>
      {isOpen && (
        <dl>
          {shortcuts.value.map(({ keys, what }) => (
            <div key={keys}>
              <dt>
                {keys.split(" ").map((key) => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
      )}
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}
