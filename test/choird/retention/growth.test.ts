import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { RetentionConfig } from "#schema/Retention.ts"
import { AGENT_TABLES, FOLDERS, KINDS, TABLES } from "#src/choird/retention/growth.ts"
import { HOME_FOLDERS } from "#src/shared/files/homeFolder.ts"
import { RULES } from "#src/choird/retention/rules.ts"

const ROOT = join(import.meta.dirname, "../../..")
const source = (path: string) => readFileSync(join(ROOT, path), "utf8")
const sources = (folder: string) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => source(join(folder, name)))

const byName = (a = "", b = "") => a.localeCompare(b)

/** The sections of config.json with an entry for each name, which only a person adds. */
const sections = Schema.decodeSync(Config)({ global_repo: { url: "/srv/global" } })

const bounds = [...Object.values(TABLES), ...Object.values(AGENT_TABLES), ...Object.values(FOLDERS)]
const page = source("docs/retention.md")

describe("what grows", () => {
  it("has every table of the migrations", () => {
    const migrations = sources("src/choird/database/migrations")
    const tables = (verb: string) =>
      migrations.flatMap((text) =>
        [...text.matchAll(new RegExp(`${verb} TABLE choir_control\\.(\\w+)`, "gu"))].map(([, name]) => name)
      )
    const dropped = tables("DROP")
    const made = tables("CREATE").filter((name) => !dropped.includes(name))
    assert.deepStrictEqual(
      [...new Set([...made, "schema_migrations"])].toSorted(byName),
      Object.keys(TABLES).toSorted(byName)
    )
  })

  it("has every table of an agent's memory, and no table is made anywhere else", () => {
    const made = sources("src/choird").flatMap((text) =>
      [...text.matchAll(/CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?([\w${}]+)\.(\w+)/gu)].map(
        ([, schema = "", name = ""]) => [schema, name] as const
      )
    )
    const of = (wanted: string) => made.flatMap(([schema, name]) => (schema === wanted ? [name] : []))
    assert.deepStrictEqual([...new Set(of("${schema}"))].toSorted(byName), Object.keys(AGENT_TABLES).toSorted(byName))
    // The row of the choird that holds the database.
    assert.deepStrictEqual(of("choird"), ["holder"])
    const others = made.filter(([schema]) => !["choir_control", "${schema}", "choird"].includes(schema))
    assert.deepStrictEqual(others, [])
  })

  it("has every folder that choird and choirctl make or look for in a home", () => {
    const named = [...sources("src/choird"), ...sources("src/choirctl")].flatMap((text) =>
      [...text.matchAll(/join\((?:config\.)?home, ((?:"[a-z]+"(?:, )?)+)/gu)].map(([, names = ""]) =>
        [...names.matchAll(/"([a-z]+)"/gu)].map(([, name]) => name).join("/")
      )
    )
    for (const path of new Set([...named, ...HOME_FOLDERS])) {
      const known = Object.hasOwn(FOLDERS, path) || Object.hasOwn(FOLDERS, path.split("/")[0] ?? "")
      assert.isTrue(known, path)
    }
    for (const path of HOME_FOLDERS) assert.property(FOLDERS, path)
  })

  it("names for each table a rule, a limit that the code has, or what of config.json it has rows for", () => {
    const code = [...sources("src"), ...sources("schema")].join("\n")
    for (const [table, bound] of [...Object.entries(TABLES), ...Object.entries(AGENT_TABLES)]) {
      const limits = "limits" in bound ? (bound.limits ?? []) : []
      for (const limit of limits) assert.match(code, new RegExp(`const ${limit} = `, "u"), table)
      const entries = "entries" in bound ? bound.entries : []
      const rules = "kinds" in bound ? bound.kinds : []
      assert.isAbove(limits.length + entries.length + rules.length, 0, table)
      for (const section of entries) assert.property(sections, section, table)
    }
  })

  it("names a rule or a reason for each, and a place for each rule and each key of the configuration", () => {
    const kinds = new Set(bounds.flatMap((bound) => ("kinds" in bound ? bound.kinds : [])))
    assert.deepStrictEqual([...kinds].toSorted(byName), [...KINDS].toSorted(byName))
    for (const { kind, table } of RULES) {
      const bound = TABLES[table]
      assert.isTrue(bound !== undefined && "kinds" in bound && bound.kinds.includes(kind), kind)
    }
    const used = new Set<string>(bounds.flatMap((bound) => ("keys" in bound ? bound.keys : [])))
    for (const key of ["workspace_mb", "disk_free_mb", "disk_free_percent"]) used.add(key)
    assert.deepStrictEqual([...used].toSorted(byName), Object.keys(RetentionConfig.fields).toSorted(byName))
  })

  it("is what docs/retention.md tells, with its keys and defaults", () => {
    const defaults = Schema.decodeSync(RetentionConfig)({})
    for (const [key, value] of Object.entries(defaults))
      assert.match(page, new RegExp(`\`${key}\` +\\| ${value} `, "u"))
    for (const name of [TABLES, AGENT_TABLES, FOLDERS].flatMap((places) => Object.keys(places)))
      assert.include(page, `\`${name}\``)
    for (const kind of KINDS) assert.include(page, kind)
  })
})
