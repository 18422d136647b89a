import { join } from "node:path"
import { configDefaults, defineConfig } from "vitest/config"

/** Files of which all is for size `full`. */
const FULL = process.env["CHOIR_TEST_SIZE"] === "full" ? [] : ["test/**/*.full.test.ts"]

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: [...configDefaults.exclude, ...FULL],
    globalSetup: [
      "test/support/memory-disk-setup.ts",
      "test/support/database-setup.ts",
      "test/support/bundles-setup.ts"
    ],
    // Modules are loaded once a worker, which halves the time: no test leaves state in a module.
    isolate: false,
    // Many tests wait for an engine, a kill or a server: one worker, the default on two cores, leaves a core idle.
    maxWorkers: 2,
    testTimeout: 300_000,
    // Programs that tests start find what Node compiled for those before them.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, "node_modules/.cache/compiled") }
  }
})
