import { randomInt } from "node:crypto";
import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Which tests to run: a tier of test/tiers, whose projects are its own. Without one, the project "all" has every test, and the
 * others run some of them once more: npx vitest run --project all FILE
 */
const TIER = process.env.FLYWHEEL_TIER;

/** Tests with processes, browsers and databases, and those that take long. */
const SYSTEM = [
  "test/{chaos,clients,cluster,deploy,e2e,faults,load,packed,postgres,s3,security,simulation,tiers,web}/**/*.test.ts",
  "test/wire/cli/*.test.ts",
  "test/wire/serving/{data-parallel,database,fleet,remote-engine}.test.ts",
  "test/wire/{generation/lifecycle,http/uds}.test.ts",
  "test/reference/{batch-invariance,trainer}.test.ts",
  "test/gguf/**/*.test.ts",
  "src/store/postgres/*.test.ts",
  "src/api/http/streams.stalled-reader.test.ts",
  "src/app/{embedded-engine,gpu-engine}.test.ts",
  "src/training/process/*.test.ts",
];

/** Attacks that compare times on the clock, so nothing else runs beside them. */
const ALONE = ["test/security/{grammar-queue,idle-connections,inspection,renderer-turns}.test.ts"];

/** What is tried in more ways than each change needs. */
const MATRIX = [
  "test/torch/**/*.test.ts",
  "test/wire/generation/fuzz.test.ts",
  "test/reference/{family-tasks,minimind,rounded-gradients,rounded-logits}.test.ts",
  "test/e2e/{mini,structured-output*,training-learns}.test.ts",
  "test/mini/**/*.test.ts",
  "test/packed/platforms.test.ts",
  "test/gguf/llama-cpp.test.ts",
];

/** Of these the system tests take a part, and the matrix all: types of weights (runner-driver.ts), calls that fail (fault-points.ts). */
const IN_PART = ["test/reference/{batch-invariance,trainer}.test.ts", "test/faults/*.test.ts"];

/** Random faults, of which the matrix has more. */
const FAULTS = [
  "test/chaos/*.test.ts",
  "test/cluster/{database-crash,kill}.test.ts",
  "test/e2e/training-crash.test.ts",
];
const MORE_FAULTS = {
  ...{ FLYWHEEL_TEST_FAULTS: "60", FLYWHEEL_TEST_KILLS: "50" },
  ...{ FLYWHEEL_TEST_RESTARTS: "24", FLYWHEEL_TEST_JOBS: "1000" },
};

/** Tests over HTTP that ask an engine. */
const ENGINE_TESTS = [
  "test/wire/{chat,completions,tokens,responses,messages}/*.test.ts",
  "test/wire/generation/{adapter-slots,lifecycle,limits,vllm-routes}.test.ts",
  "test/wire/{models/models,serving/engine,serving/inspect,serving/operations}.test.ts",
  "test/clients/{clients,sdk,tool-loop}.test.ts",
];

/** Tests of the store, and of what keeps its rows there: once more with the rows in PostgreSQL (--database). */
const STORE_TESTS = [
  "src/store/{sessions,store,tokens,workspaces}.test.ts",
  "src/store/tables/*.test.ts",
  "src/training/service*.test.ts",
  "src/training/jobs/*.test.ts",
  "src/training/steps/*.test.ts",
  "src/training/files/{curves,claim-storage,shared-folder}.test.ts",
  "test/cluster/two-servers.test.ts",
  "test/wire/training/{training*,art-client}.test.ts",
  "test/wire/{cli/cli-training,responses/responses-stored,http/nul-ids}.test.ts",
];
/** Those that take long, and to which the store is only a store. */
const LONG_STORE_TESTS = [
  "test/e2e/{training-crash,training-examples,training-learns,remote-training}.test.ts",
  "test/s3/training.test.ts",
];

/** Tests of the model and of its gradients, for which it matters what computes them. */
const KERNEL_TESTS = [
  "src/graph/*.test.ts",
  "src/model/*.test.ts",
  "src/model/{attention,linear}/*.test.ts",
  "test/reference/{fixtures,batch-invariance,trainer}.test.ts",
];

const ALL = ["src/**/*.test.ts", "test/**/*.test.ts", "web/**/*.test.{ts,tsx}"];
const INSTALLED = "**/node_modules/**";
// Setups come after those of all projects (below).
const BROWSER = { globalSetup: ["test/web/find-browser.ts"] };
const POSTGRES = {
  env: { FLYWHEEL_TEST_STORE: "postgres" },
  globalSetup: ["test/postgres/project-server.ts"],
  setupFiles: ["test/postgres/drop-databases.ts"],
  isolate: false,
};

const project = (name: string, include: readonly string[], options: object = {}) => ({
  extends: true as const,
  test: { name, include: [...include], ...options },
});

const MORE_OFTEN = [
  /** Tests that ask an engine, once more with the engine in another server (--engine-url). */
  project("remote", ENGINE_TESTS, { env: { FLYWHEEL_TEST_ENGINE: "remote" } }),
  /** Once more without the native module (native/), as on macOS, Windows and older processors. */
  project("graph", KERNEL_TESTS, { env: { FLYWHEEL_KERNELS: "graph" } }),
  /** The native module as on x64 processors without AVX-512. Where it does not run, tests of the module are skipped. */
  project("avx2", ["src/graph/native/*.test.ts"], { env: { FLYWHEEL_KERNELS: "avx2" } }),
];

const PROJECTS = {
  "": [
    project("all", ALL, BROWSER),
    project("postgres", [...STORE_TESTS, ...LONG_STORE_TESTS], POSTGRES),
    ...MORE_OFTEN,
  ],
  // Files share modules: loading them for each would take longer than the tests.
  test: [
    project("test", ALL, {
      exclude: [INSTALLED, ...SYSTEM, ...MATRIX],
      isolate: false,
      testTimeout: 60_000,
    }),
  ],
  system: [
    project("system", SYSTEM, { exclude: [INSTALLED, ...ALONE, ...MATRIX], ...BROWSER }),
    project("postgres", STORE_TESTS, POSTGRES),
    project("alone", ALONE, { maxWorkers: 1, sequence: { groupOrder: 1 } }),
  ],
  matrix: [
    project("matrix", [...MATRIX, ...IN_PART]),
    project("faults", FAULTS, { env: MORE_FAULTS }),
    project("postgres", LONG_STORE_TESTS, POSTGRES),
    ...MORE_OFTEN,
  ],
};

/** Vitest begins with large files. These take longer than larger ones, and must not be the last while another core is idle. */
const LONG =
  /test\/(chaos|faults|packed|cluster\/(kill|pause|database-crash|two-builds)|s3\/processes|web\/(accessibility|long-chat|teach))/;

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification) => LONG.test(moduleId);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

// Property tests draw new cases in every run. To draw those of a run again: FLYWHEEL_PROPERTY_SEED=20 npm test
if (process.env.FLYWHEEL_PROPERTY_SEED === undefined) {
  process.env.FLYWHEEL_PROPERTY_SEED = String(randomInt(2 ** 31));
  console.log(`FLYWHEEL_PROPERTY_SEED=${process.env.FLYWHEEL_PROPERTY_SEED}`);
}

export default defineConfig({
  test: {
    // One more than there are cores: some files wait for processes to start, for leases to end and the like.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: LongFirst },
    // Only what hangs meets these: a busy host may be fifty times slower than an idle one, and no test sets a shorter limit.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 300_000, interval: 20 } },
    globalSetup: "test/temporary-folder.ts",
    // As cli/main.ts does for a server.
    env: { ORT_DISABLE_TELEMETRY: "1" },
    setupFiles: "test/property-seed.ts",
    projects: PROJECTS[(TIER ?? "") as keyof typeof PROJECTS],
  },
});
