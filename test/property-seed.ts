// Property tests draw from the seed that vitest.config.ts chose for this run and printed; a failure prints it, too.
import fc from "fast-check";

const seed = Number(process.env.FLYWHEEL_PROPERTY_SEED);
if (!Number.isInteger(seed)) throw new Error("FLYWHEEL_PROPERTY_SEED must be a whole number");
fc.configureGlobal({ seed });
