// Property tests draw the same cases in every run, so that a change is judged by what it changes. Other cases:
//   FLYWHEEL_PROPERTY_SEED=random npm test    (or a number, which a failure prints)
import fc from "fast-check";

const chosen = process.env.FLYWHEEL_PROPERTY_SEED ?? "20";
if (chosen !== "random") fc.configureGlobal({ seed: Number(chosen) });
