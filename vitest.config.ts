import { join } from "node:path"
import { configDefaults, defineConfig } from "vitest/config"
import { LongestFirst } from "./test/support/LongestFirst.ts"

/** Files of which all is for size `full`. */
const FULL = process.env["CHOIR_TEST_SIZE"] === "full" ? [] : ["test/**/*.full.test.ts"]

/**
 * The groups of the tests, each with workers of its own. A worker that opened dozens of databases is half a gigabyte large, and to start a
 * program from it, and to write to its memory afterwards, takes many times as long as from a small one. So tests that start many programs are apart.
 */
const GROUPS: ReadonlyArray<readonly [name: string, ...foldersAndFiles: ReadonlyArray<string>]> = [
  [
    "approvals",
    "choird/approvals",
    "choird/proposals",
    "choird/skillimports",
    "choird/agents",
    "choird/reconfiguration",
    "choird/trials"
  ],
  [
    "programs",
    "choird/images",
    "choird/repos",
    "choird/runtime",
    "choird/main.test.ts",
    "agent/git",
    "agent/process",
    "shared/program/compiledProgram.test.ts"
  ],
  ["systems", "adversary", "chaos", "docs", "e2e", "invariants", "library", "living", "siege", "simulation", "tools"],
  ["choirctl", "choirctl", "demo", "mutate", "support"],
  ["choird", "choird"],
  ["units", "agent", "schema", "shared"]
]

const filesIn = (paths: ReadonlyArray<string>) =>
  paths.map((path) => (path.endsWith(".ts") ? `test/${path}` : `test/${path}/**/*.test.ts`))

/** The projects share these (`test/support/heldByProjects.ts`). */
const PROGRAMS_AND_DATABASES = ["memory-disk", "bundles", "database"].map((name) => `test/support/${name}-setup.ts`)

/** Files of a group that are in none before it. */
const projects = GROUPS.map(([name, ...folders], at) => ({
  test: {
    name,
    include: filesIn(folders),
    exclude: [...configDefaults.exclude, ...FULL, ...GROUPS.slice(0, at).flatMap(([, ...before]) => filesIn(before))],
    // Modules are loaded once a worker, which halves the time: no test leaves state in a module.
    isolate: false,
    // The units need neither, and begin at once.
    globalSetup: name === "units" ? [] : PROGRAMS_AND_DATABASES,
    // Many tests wait for an engine, a kill or a rate limit: three workers used 59 % of two cores for the groups of choird, and 79 % for the systems.
    maxWorkers: 5,
    testTimeout: 300_000,
    // As choird does (src/shared/program/wasmInlining.ts): many tests have an embedded database in their own process.
    execArgv: ["--no-wasm-inlining"],
    // Times are told in the zone of the host, whatever it is where the tests run.
    // Programs that tests start find what Node compiled for those before them.
    env: { TZ: "UTC", NODE_COMPILE_CACHE: join(import.meta.dirname, "node_modules/.cache/compiled") }
  }
}))

export default defineConfig({
  test: {
    globalSetup: ["test/support/device-setup.ts", "test/support/memory-disk-setup.ts"],
    sequence: { sequencer: LongestFirst },
    projects
  }
})
