// Refuses requests under foreign host names. A web page can point its own name at this address (DNS rebinding) and then
// counts as part of this server for the browser. It cannot do that with an IP address or localhost.
//
// On loopback, where only programs of this machine and its browsers call, every other name is refused. A server on another
// address is reached by names that only its operator knows, through proxies, services and DNS, so it accepts all of
// them until --allowed-hosts names them. A rebound page gets little there: every closed route needs a token, which
// travels in a header and never in a cookie.
import { isIP } from "node:net";
import type { Config } from "../../config/options.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { isLoopback } from "../../system/text.ts";

/** A name or an address, maybe with a port. IPv6 addresses are in brackets. */
const HOST = /^(?:\[([\da-f:.]+)\]|([^\s:[\]/@]+))(?::\d{1,5})?$/i;

/** Whether a Host header names this server. */
export function hostCheck(
  config: Pick<Config, "allowedHosts" | "host" | "uds">,
): (host: string | undefined) => boolean {
  const { allowedHosts: allowed } = config;
  const isExposed = config.uds !== null || !isLoopback(config.host);
  if (allowed.includes("*") || (allowed.length === 0 && isExposed)) return () => true;
  return (host) => {
    const [, ipv6, other] = HOST.exec(host ?? "") ?? [];
    if (ipv6 !== undefined) return isIP(ipv6) === 6;
    if (other === undefined) return false;
    const name = other.toLowerCase().replace(/\.$/, "");
    if (isIP(name) === 4 || name === "localhost" || name.endsWith(".localhost")) return true;
    return allowed.some((one) => (one.startsWith("*.") ? name.endsWith(one.slice(1)) : name === one));
  };
}

export function misdirected(): ServiceError {
  const message =
    "This server does not answer under this host name: use its IP address or localhost, or start it with --allowed-hosts NAME.";
  return new ServiceError("misdirected_request", message);
}
