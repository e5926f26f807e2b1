import { defineConfig } from "vitest/config";

/** Files of test/wire/ whose tests ask an engine. */
const ENGINE_TESTS = [
  "adapter-slots",
  "chat-*",
  "clients",
  "completions",
  "engine",
  "generate",
  "generate-clients",
  "inspect",
  "lifecycle",
  "limits",
  "messages",
  "models",
  "openai-extensions",
  "operations",
  "responses",
  "responses-stored",
  "sdk",
  "tool-loop",
  "vllm-routes",
];

/** Tests of training and of stored responses, whose rows may be in either store. Those of src/store have both in each file. */
const STORE_TESTS = [
  "src/training/service*.test.ts",
  "src/training/jobs/*.test.ts",
  "src/training/steps/*.test.ts",
  "src/training/files/{curves,claim-storage,visible-files}.test.ts",
  "test/wire/{training*,art-client,cli-training,responses-stored}.test.ts",
  "test/e2e/{training*,remote-training}.test.ts",
  "test/s3/training.test.ts",
];

/** Tests of the model and of its gradients, for which it matters what computes them. */
const KERNEL_TESTS = [
  "src/graph/*.test.ts",
  "src/model/*.test.ts",
  "src/model/{attention,linear}/*.test.ts",
  "test/reference/{fixtures,batch-invariance,trainer}.test.ts",
];

export default defineConfig({
  test: {
    // Only what hangs meets these: a busy host may be fifty times slower than an idle one, and no test sets a shorter limit.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 300_000, interval: 20 } },
    maxWorkers: 2,
    globalSetup: "test/temporary-folder.ts",
    // As cli/main.ts does for a server.
    env: { ORT_DISABLE_TELEMETRY: "1" },
    setupFiles: "test/property-seed.ts",
    projects: [
      {
        extends: true,
        test: {
          name: "all",
          include: ["src/**/*.test.ts", "test/**/*.test.ts", "models/**/*.test.ts", "web/**/*.test.{ts,tsx}"],
          globalSetup: ["test/temporary-folder.ts", "test/web/find-browser.ts"],
        },
      },
      {
        // Once more with the rows in PostgreSQL (--database).
        extends: true,
        test: {
          name: "postgres",
          include: STORE_TESTS,
          env: { FLYWHEEL_TEST_STORE: "postgres" },
          globalSetup: ["test/temporary-folder.ts", "test/postgres/project-server.ts"],
        },
      },
      {
        // Tests that ask an engine, once more with the engine in another server (--engine-url).
        extends: true,
        test: {
          name: "remote",
          include: ENGINE_TESTS.map((name) => `test/wire/${name}.test.ts`),
          env: { FLYWHEEL_TEST_ENGINE: "remote" },
        },
      },
      {
        // Once more without the native module (native/), as on macOS, Windows and older processors.
        extends: true,
        test: { name: "graph", include: KERNEL_TESTS, env: { FLYWHEEL_KERNELS: "graph" } },
      },
      {
        // The native module as on x64 processors without AVX-512. Where it does not run, tests of the module are skipped.
        extends: true,
        test: { name: "avx2", include: ["src/graph/native/*.test.ts"], env: { FLYWHEEL_KERNELS: "avx2" } },
      },
    ],
  },
});
