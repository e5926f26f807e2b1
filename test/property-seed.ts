// Property tests draw from the seed that vitest.config.ts chose for this run, and a failure prints it.
import fc from "fast-check";

fc.configureGlobal({ seed: Number(process.env.FLYWHEEL_PROPERTY_SEED) });
