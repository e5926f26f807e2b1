// Time as the database has it, the same for all servers: leases and heartbeats are compared with no other clock.

/** Milliseconds since 1970. */
export const DATABASE_NOW = "(SELECT now_ms FROM clock)";
