// The processes that compute for this server: trainers, their launchers, their Python. What they are given, how they are
// ended, and what is left of their words.

// Their environment: a server's own holds keys (of the database, of storage, of the hub) that they have no use for, so they
// get what is listed.

/** A name, or the beginning of one with a * behind it. */
const PASSED_ON = [
  ...[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "HOSTNAME",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "TMP",
    "TEMP",
  ],
  ...["LD_*", "DYLD_*", "PYTHON*", "VIRTUAL_ENV", "CONDA_*", "XDG_CACHE_HOME", "NODE_OPTIONS", "ORT_*"],
  ...["CUDA_*", "NVIDIA_*", "NCCL_*", "CUBLAS_*", "CUDNN_*", "HIP_*", "HSA_*", "ROCR_*", "ROCM_*"],
  ...["TORCH*", "PYTORCH_*", "TRITON_*", "GLOO_*", "UCX_*", "FI_*", "RAY_*", "SLURM_*"],
  ...["OMP_*", "MKL_*", "KMP_*", "GOMP_*", "OPENBLAS_*"],
  ...["HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "TRANSFORMERS_*", "TOKENIZERS_PARALLELISM"],
  ...["FLYWHEEL_KERNELS", "FLYWHEEL_TRAINER_DIVIDE"],
];
/** Nothing runs without these on Windows, whose names have no case. */
const WINDOWS = [
  ...["SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "NUMBER_OF_PROCESSORS", "PROCESSOR_*"],
  ...["USERNAME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES*"],
];
const IS_WINDOWS = process.platform === "win32";
/** No * stands for these. */
const KEY = /KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|JWT/i;

/** `more`: further names as above, of this process's environment. `own`: variables to set. */
export function childEnvironment(
  more: readonly string[] = [],
  own: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const patterns = [...PASSED_ON, ...(IS_WINDOWS ? WINDOWS : []), ...more];
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && patterns.some((pattern) => fits(name, pattern))) passed[name] = value;
  }
  return { ...passed, ...own };
}

function fits(name: string, pattern: string): boolean {
  const [text, wanted] = IS_WINDOWS ? [name.toUpperCase(), pattern.toUpperCase()] : [name, pattern];
  if (!wanted.endsWith("*")) return text === wanted;
  return text.startsWith(wanted.slice(0, -1)) && !KEY.test(text);
}

/** Sends a signal to a process that leads a group of its own, and to all that it started there. Gone already is fine. */
export function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

const LAST_CHARACTERS = 2_000;

/** The end of what a process wrote, for the log if it dies. Clients see how it ended, and not these words. */
export class LastWords {
  #text = "";

  add(chunk: Buffer): void {
    this.#text = (this.#text + chunk.toString()).slice(-LAST_CHARACTERS);
  }

  clear(): void {
    this.#text = "";
  }

  /** Clients see the message, so what the process wrote is only its cause. */
  error(message: string): Error {
    const words = this.#text.trim();
    return words === ""
      ? new Error(message)
      : new Error(`${message}; the server's log has its last words`, { cause: words });
  }
}

/** `what`: "the trainer process". */
export function howItEnded(what: string, code: number | null, killedBy: NodeJS.Signals | null): string {
  return `${what} ${killedBy ? `was ended by ${killedBy}` : `ended with code ${code}`}`;
}
