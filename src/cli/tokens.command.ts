// `flywheel tokens create | list | revoke | join`: manages access tokens in the server's database. A running server sees every change
// at once. A token's text is printed once, when it is created.
import type { Command } from "commander";
import { OperatorError } from "../errors/faults.ts";
import { SCOPES, type Scope, type TokenRecord, TokenStore } from "../store/tokens.ts";
import { WORKSPACE_NAME } from "../store/workspaces.ts";
import { printTable } from "./draw.ts";
import { addOptionFlags, PLACE, storePlace, withExistingStore, withStore } from "./flags.ts";

interface CommonOptions {
  json?: boolean;
}

interface CreateOptions extends CommonOptions {
  name: string;
  scope: string[];
  lifetime: string;
  workspace?: string;
}

export function addTokensCommand(program: Command): void {
  const tokens = program.command("tokens").description("Create, list, revoke and join access tokens.");

  const create = tokens
    .command("create")
    .description("Create a token and print it. It cannot be printed again.")
    .option("--name <NAME>", "what it is for", "unnamed")
    .option(`--scope <${SCOPES.join("|")}...>`, "what it may do; admin opens every route", ["inference"])
    .option("--lifetime <TIME>", "how long it is valid: 12h, 30d, 1y or `forever`", "forever")
    .option("--workspace <NAME>", "whose policies and jobs it has (default: a workspace of its own)")
    .option("--json", "print JSON")
    .action(async (options: CreateOptions) => {
      const token = {
        name: options.name,
        scopes: readScopes(options.scope),
        lifetime: readLifetime(options.lifetime),
        ...(options.workspace === undefined ? {} : { workspace: readWorkspace(options.workspace) }),
      };
      await withStore(storePlace(create), async (store) => {
        const { secret, record } = await new TokenStore(store).create(token);
        console.log(options.json ? JSON.stringify({ token: secret, ...shown(record) }) : secret);
      });
    });

  const list = tokens
    .command("list")
    .description("List tokens. Their text is not stored.")
    .option("--json", "print JSON")
    .action(async (options: CommonOptions) => {
      await withExistingStore(storePlace(list), async (store) => {
        const rows = (await new TokenStore(store).list()).map(shown);
        if (options.json) {
          console.log(JSON.stringify(rows));
          return;
        }
        const cells = rows.map((row) => [
          row.id,
          row.scopes.join(","),
          row.created,
          row.state,
          row.workspace,
          row.name,
        ]);
        printTable([["id", "scopes", "created", "state", "workspace", "name"], ...cells]);
      });
    });

  const revoke = tokens
    .command("revoke")
    .description("Revoke a token, effective at once.")
    .argument("<ID|NAME>")
    .action(async (idOrName: string) => {
      await withExistingStore(storePlace(revoke), async (store) => {
        const revoked = await new TokenStore(store).revoke(idOrName);
        if (revoked.length === 0) throw new OperatorError(`no valid token has the id or name ${idOrName}`);
        for (const token of revoked) console.log(`revoked ${token.id} (${token.name})`);
      });
    });

  const join = tokens
    .command("join")
    .description("Move tokens to a workspace. Policies and jobs follow if no valid token stays in the old one.")
    .argument("<ID|NAME>")
    .requiredOption("--workspace <NAME>", "where to; it is made if there is none")
    .action(async (idOrName: string, options: { workspace: string }) => {
      const workspace = readWorkspace(options.workspace);
      await withExistingStore(storePlace(join), async (store) => {
        const joined = await new TokenStore(store).join(idOrName, workspace);
        if (joined.length === 0) throw new OperatorError(`no token has the id or name ${idOrName}`);
        for (const token of joined) console.log(`${token.id} (${token.name}) is in the workspace ${workspace}`);
      });
    });
  for (const command of [create, list, revoke, join]) addOptionFlags(command, PLACE);
}

function readScopes(given: readonly string[]): Scope[] {
  const scopes = given.flatMap((item) => item.split(","));
  const unknown = scopes.find((scope) => !(SCOPES as readonly string[]).includes(scope));
  if (unknown !== undefined) throw new OperatorError(`unknown scope ${unknown}: use ${SCOPES.join(", ")}`);
  return [...new Set(scopes)] as Scope[];
}

function readWorkspace(name: string): string {
  if (WORKSPACE_NAME.test(name)) return name;
  throw new OperatorError("a workspace's name has 1 to 128 characters, no spaces around it and no control characters");
}

const UNITS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86400, w: 7 * 86400, y: 365 * 86400 };

const LONGEST_LIFETIME = 1000 * UNITS.y!;

/** Seconds; null = forever. */
function readLifetime(text: string): number | null {
  if (text === "forever") return null;
  const match = /^(\d{1,6})([smhdwy])$/.exec(text);
  const seconds = match === null ? 0 : Number(match[1]) * UNITS[match[2]!]!;
  if (seconds === 0 || seconds > LONGEST_LIFETIME) {
    throw new OperatorError(`a lifetime looks like 12h, 30d, 1y (at most 1000y) or forever, not ${text}`);
  }
  return seconds;
}

function shown(token: TokenRecord) {
  const date = (time: number) => new Date(time * 1000).toISOString().slice(0, 19);
  const expired = token.expiresAt !== null && token.expiresAt * 1000 <= Date.now();
  const validity = token.expiresAt === null ? "valid" : `valid until ${date(token.expiresAt)}`;
  const state = token.revokedAt !== null ? "revoked" : expired ? "expired" : validity;
  return {
    id: token.id,
    name: token.name,
    scopes: token.scopes,
    created: date(token.createdAt),
    state,
    workspace: token.workspace.name,
  };
}
