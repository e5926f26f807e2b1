// `flywheel status`: a page about a running server, and the servers that share its database. Fails when none answers, and says
// what to do.

import type { Command } from "commander";
import { loadConfig } from "../../config/load.ts";
import { envName } from "../../config/options.ts";
import { OperatorError } from "../../errors/faults.ts";
import { isSame, usableKey } from "../../store/local-key.ts";
import { givenFlags } from "../flags.ts";
import { addTargetOptions, type TargetOptions, withClient } from "../servers.ts";

interface StatusOptions extends TargetOptions {
  json?: boolean;
}

export function addStatusCommand(program: Command): void {
  const command = program
    .command("status")
    .description("Show a running server: address, model, requests, key, data folder, policies and jobs.")
    .option("--json", "print JSON");
  addTargetOptions(command);
  command.action((options: StatusOptions) => showStatus(serverPlace(command), options));
}

/** Where a server would run without other flags. Settings that do not matter here must not make this fail. */
function serverPlace(command: Command) {
  const names = (["data", "host", "port"] as const).map(envName);
  const env = Object.fromEntries(names.map((name) => [name, process.env[name]]));
  return loadConfig({ flags: givenFlags(command), env });
}

async function showStatus(place: ReturnType<typeof serverPlace>, options: StatusOptions): Promise<void> {
  // Imported here, so that --help and the other commands start quickly.
  const { askServer, statusLines } = await import("./report.ts");
  try {
    await withClient({ ...options, data: place.data }, async (client, { baseUrl }) => {
      const key = usableKey(place.data);
      const isHere = key !== null && isSame(key.url, baseUrl);
      const url = baseUrl.replace(/\/+(v1\/*)?$/, "");
      const running = await askServer(client, url, isHere ? { ...place, key } : null);
      console.log(options.json ? JSON.stringify(running) : statusLines(running, new Date()).join("\n"));
    });
  } catch (error) {
    // a server was meant that is not on this machine: its address was given
    if (!(error instanceof OperatorError) || options.url !== undefined || process.env.OPENAI_BASE_URL) throw error;
    await printFindings(place);
    throw error;
  }
}

/** What doctor finds about the server of this machine. */
async function printFindings(place: ReturnType<typeof serverPlace>): Promise<void> {
  const { checkServer } = await import("../doctor/server.check.ts");
  const { findingLines } = await import("../doctor/finding.ts");
  for await (const finding of checkServer(place)) {
    if (finding.status !== "ok") console.error(findingLines(finding).join("\n"));
  }
}
