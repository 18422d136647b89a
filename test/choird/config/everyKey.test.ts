/** Whatever config.json accepts is read by something. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { JobPool } from "#schema/JobProfile.ts"
import { configSchema } from "#src/choirctl/home/initHome.ts"
import { packageFolder } from "#src/shared/files/packageFolder.ts"

interface Node {
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, Node>>
  readonly patternProperties?: Readonly<Record<string, Node>>
  readonly additionalProperties?: Node | boolean
  readonly anyOf?: ReadonlyArray<Node>
  readonly allOf?: ReadonlyArray<Node>
  readonly definitions?: Readonly<Record<string, Node>>
}

/** The dotted paths of all keys that hold no further keys; `*` stands for a name. */
const leaves = (): ReadonlyArray<string> => {
  const root = configSchema as unknown as Node
  const found = new Set<string>()
  const walk = (node: Node, path: string): void => {
    if (node.$ref !== undefined) {
      const target = root.definitions?.[(node.$ref.split("/").at(-1) ?? "").replaceAll("~1", "/")]
      if (target !== undefined) walk(target, path)
    }
    for (const part of [...(node.anyOf ?? []), ...(node.allOf ?? [])]) walk(part, path)
    for (const [key, inner] of Object.entries(node.properties ?? {})) {
      const place = path === "" ? key : `${path}.${key}`
      found.add(place)
      walk(inner, place)
    }
    const named = [...Object.values(node.patternProperties ?? {}), node.additionalProperties]
    for (const inner of named) if (typeof inner === "object") walk(inner, `${path}.*`)
  }
  walk(root, "")
  return [...found].filter((path) => ![...found].some((other) => other.startsWith(`${path}.`)))
}

/** Read by people and their editors. */
const FOR_PEOPLE = new Set(["$schema"])

/** Keys that the program reads by the value of another: `pools[pool]`. Each pool of a profile has one. */
const BY_VALUE = new Set(JobPool.literals.map((pool) => `jobs.pools.${pool}`))

/** Handed on to the voice service as a whole. */
const isHandedOn = (path: string): boolean => path.startsWith("voice_profiles.*.voice_settings.")

const sources = (folder: string): string =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => readFileSync(join(folder, name), "utf8"))
    .join("\n")

describe("every key of config.json", () => {
  it("is named by a line of the program", () => {
    const text = sources(join(packageFolder, "src"))
    const unread = leaves().filter(
      (path) =>
        !FOR_PEOPLE.has(path) &&
        !BY_VALUE.has(path) &&
        !isHandedOn(path) &&
        !new RegExp(`\\b${path.split(".").at(-1) ?? ""}\\b`, "u").test(text)
    )
    assert.deepStrictEqual(unread, [])
    assert.isAbove(leaves().length, 90)
  })
})
