// Who is signed in, and for admins the tokens of the server.
import { NewToken } from "../access/new-token.tsx";
import { stateOf, type TokenRow } from "../access/token-row.ts";
import { ago, bytes, moment } from "../format.ts";
import { ConfirmButton } from "../parts/confirm-button.tsx";
import { TableScroll } from "../parts/table-scroll.tsx";
import { useQuery } from "../parts/use-query.ts";
import { useTitle } from "../parts/use-title.ts";
import { callJson, getJson } from "../server.ts";
import { may, me } from "../server-facts.ts";
import { forget } from "../session.ts";

export function Access() {
  useTitle("Access");
  const who = me.value;
  return (
    <div class="serving">
      <h1>Access</h1>
      {who !== null && (
        <p class="row">
          <span>
            You are <b>{who.name}</b> <span class="muted mono">{who.id}</span>
          </span>
          <span>
            in the workspace <b>{who.workspace.name}</b>
          </span>
          {who.scopes.map((scope) => (
            <span key={scope} class="chip">
              {scope}
            </span>
          ))}
          <span class="muted">
            {who.session ? "signed in by a link" : "signed in with a token"}
            {who.expires_at !== null && `, until ${moment(who.expires_at)}`}
          </span>
          {who.storage !== null && (
            <span class="muted">
              {bytes(who.storage.used)} of {bytes(who.storage.limit)} on disk
            </span>
          )}
        </p>
      )}
      {who !== null &&
        (may("admin") ? (
          <Tokens own={who.id} />
        ) : (
          <p>
            Tokens are created by an admin here, or in a terminal: <code>flywheel tokens create</code>
          </p>
        ))}
    </div>
  );
}

function Tokens({ own }: { own: string }) {
  const { data, error, reload } = useQuery("tokens", async (signal) => {
    const rows: TokenRow[] = [];
    for (let after: string | null = null; ; after = rows.at(-1)!.id) {
      const page: { data: TokenRow[]; has_more: boolean } = await getJson("/tokens", { query: { after }, signal });
      rows.push(...page.data);
      if (!page.has_more) return rows;
    }
  });
  const revoke = async (id: string) => {
    await callJson("DELETE", `/tokens/${encodeURIComponent(id)}`);
    if (id === own) forget("The token was revoked.");
    else reload();
  };
  return (
    <>
      <NewToken onMade={reload} />
      {error !== null && <p class="problem">{error}</p>}
      {data !== null && (
        <TableScroll label="Tokens">
          <table class="tokens-table">
            <caption class="sr-only">Tokens of this server</caption>
            <thead>
              <tr>
                <th>id</th>
                <th>name</th>
                <th>scopes</th>
                <th>workspace</th>
                <th>created</th>
                <th>state</th>
                <th>last used</th>
                <th>
                  <span class="sr-only">revoke</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {data.map((row) => (
                <Row key={row.id} row={row} isOwn={row.id === own} onRevoke={() => void revoke(row.id)} />
              ))}
            </tbody>
          </table>
        </TableScroll>
      )}
    </>
  );
}

function Row({ row, isOwn, onRevoke }: { row: TokenRow; isOwn: boolean; onRevoke: () => void }) {
  const now = Date.now();
  const { text, isUsable } = stateOf(row, now);
  return (
    <tr class={isUsable ? "" : "muted"}>
      <td class="mono">{row.id}</td>
      <td>
        {row.name} {isOwn && <span class="chip">you</span>}
      </td>
      <td>{row.scopes.join(" ")}</td>
      <td>{row.workspace}</td>
      <td class="num">{moment(row.created_at)}</td>
      <td>{text}</td>
      <td>{row.last_used_at === null ? "never" : ago(row.last_used_at, now)}</td>
      <td>
        {isUsable && (
          <ConfirmButton
            label="revoke"
            name={`Revoke ${row.name}`}
            question={isOwn ? "This signs you out." : "Whoever uses it is cut off."}
            onConfirm={onRevoke}
          />
        )}
      </td>
    </tr>
  );
}
