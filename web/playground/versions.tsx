// ‹2/3›: which version is shown, and the way to the others.
export interface VersionsProps {
  of: string;
  /** Counts from 0. */
  at: number;
  count: number;
  onShow: (version: number) => void;
}

export function Versions({ of, at, count, onShow }: VersionsProps) {
  if (count < 2) return null;
  return (
    <span class="versions num">
      <button
        type="button"
        class="small quiet"
        aria-label={`Version before of ${of}`}
        disabled={at <= 0}
        onClick={() => onShow(at - 1)}
      >
        ‹
      </button>
      <span>
        <span class="sr-only">version </span>
        {at + 1}/{count}
      </span>
      <button
        type="button"
        class="small quiet"
        aria-label={`Next version of ${of}`}
        disabled={at >= count - 1}
        onClick={() => onShow(at + 1)}
      >
        ›
      </button>
    </span>
  );
}
