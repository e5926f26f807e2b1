// Starts a Flywheel server as its own process on a free port.
import { spawn } from "node:child_process";

const START_SECONDS = 120;

/** `token` is a key that it accepts. */
export async function startFlywheel(
  token: string,
  flags: readonly string[],
): Promise<{ url: string; stop(): Promise<void> }> {
  const child = spawn(process.execPath, ["bin/flywheel", "serve", ...flags, "--port", "0", "--api-key", token], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const url = await new Promise<string>((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`no server after ${START_SECONDS} s`)), START_SECONDS * 1000);
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(text)?.[0];
      if (found !== undefined) {
        clearTimeout(late);
        resolve(found);
      }
    });
    gone.then(() => reject(new Error("the server did not start")));
  });
  const stop = async () => {
    child.kill("SIGTERM");
    await gone;
  };
  return { url, stop };
}
