#!/usr/bin/env node
// `npm start` is `exec node bin/flywheel serve`: the shell that npm starts becomes the server, so that a signal to npm
// reaches it. Otherwise Debian's shell dies of SIGTERM without the server, and keeps SIGINT for itself until the server
// ends. Windows has no such signals and its shell no `exec`. There npm finds this program instead.
const { spawnSync } = require("node:child_process");

const [program, ...args] = process.argv.slice(2);
const { status, error } = spawnSync(program, args, { stdio: "inherit" });
if (error !== undefined) console.error(error.message);
process.exit(status ?? 1);
