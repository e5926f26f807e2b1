import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts", "models/**/*.test.ts"],
    // Generous, for machines that are busy with something else; tests do not measure time.
    testTimeout: 120_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    globalSetup: "test/temporary-folder.ts",
    // As cli/main.ts does for a server.
    env: { ORT_DISABLE_TELEMETRY: "1" },
    setupFiles: "test/property-seed.ts",
  },
});
