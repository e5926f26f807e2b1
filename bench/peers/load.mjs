// Imports a peer's package from this folder's node_modules, which the benchmark's own files cannot see.
export const load = (name) => import(name);
