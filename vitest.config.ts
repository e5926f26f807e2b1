import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts", "models/**/*.test.ts"],
    // Only what hangs meets these: a busy host may be fifty times slower than an idle one, and no test sets a shorter limit.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 300_000, interval: 20 } },
    maxWorkers: 2,
    globalSetup: "test/temporary-folder.ts",
    // As cli/main.ts does for a server.
    env: { ORT_DISABLE_TELEMETRY: "1" },
    setupFiles: "test/property-seed.ts",
  },
});
