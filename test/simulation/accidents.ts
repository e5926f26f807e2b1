// What happens to whole processes and machines of a simulation: they are killed, stopped, paused and cut off, the database goes
// away, the disk is full, the power fails. Single calls fail besides (world.ts, database.ts, engines.ts, trainer.ts).

import type { Accident, Cluster } from "./cluster.ts";

/** Milliseconds between two accidents. */
const PAUSE = [200, 4_000] as const;

/** Causes accidents until it is told to stop. Then puts everything right again. */
export async function causeAccidents(cluster: Cluster, over: () => boolean): Promise<void> {
  const { world, plan } = cluster;
  const weights = plan.accidents;
  const some = Object.values(weights).some((weight) => weight > 0);
  while (!over()) {
    await world.pause(world.chance.between(...PAUSE), "accident");
    if (some && !over()) cause(world.chance.weighted(weights), cluster);
  }
  world.isFaulty = false;
  cluster.disk.capacity = Number.POSITIVE_INFINITY;
  cluster.database.awayUntil = 0;
  for (const { links } of cluster.servers) for (const link of links) link.cutUntil = 0;
}

function cause(accident: Accident, cluster: Cluster): void {
  const { world, plan, disk, database, engines, servers } = cluster;
  const { chance } = world;
  const place = chance.between(0, servers.length - 1);
  const server = servers[place]!;
  const ms = chance.between(50, 3_000);
  switch (accident) {
    case "kill":
      world.count("kill", server.name);
      server.process.die();
      return;
    case "stop":
      if (!server.serves) return;
      world.count("stop", server.name);
      cluster.stop(place);
      return;
    case "short pause":
    case "pause past the lease":
      world.count(accident, server.name);
      server.process.pause(world.now + ms + (accident === "short pause" ? 0 : plan.leaseMs + 1_000));
      return;
    case "database away":
      world.count(accident);
      database.awayUntil = world.now + ms * chance.pick([1, 5]);
      return;
    case "disk full":
      world.count(accident);
      disk.capacity = disk.used + chance.pick([0, 1_000, 100_000]);
      world.at(world.outside, ms, "disk has room", () => {
        disk.capacity = Number.POSITIVE_INFINITY;
      });
      return;
    case "power failure":
      world.count(accident);
      server.process.die();
      disk.losePower(chance);
      return;
    case "engine killed":
      world.count(accident);
      chance.pick(engines).process.die();
      return;
    case "link cut": {
      const link = server.links.length > 0 ? chance.pick(server.links) : null;
      if (link === null) return;
      world.count(accident, `${server.name} to ${link.name}`);
      link.cutUntil = world.now + ms;
      return;
    }
  }
}
