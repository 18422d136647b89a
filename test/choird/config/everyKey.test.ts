/** Whatever config.json accepts is read by something. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { BINDINGS } from "#schema/Resources.ts"
import { configSchema } from "#src/choirctl/home/initHome.ts"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import { type Field, fieldsOf, unreadFields } from "./readFields.ts"
import { lastName, parsed, walk } from "../../support/syntax.ts"

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

/** The files whose structs config.json is made of. */
const SCHEMAS = [
  "Config",
  "EmailAccount",
  "Embedding",
  "GitIdentity",
  "ResourceBindings",
  "Resources",
  "Retention",
  "Telemetry",
  "Transport",
  "Voice"
]

/** The fields of those structs. */
const declared = (): ReadonlyArray<Field> =>
  SCHEMAS.flatMap((name) => {
    const path = join(packageFolder, "schema", `${name}.ts`)
    const found: Array<Field> = []
    walk(parsed(path, readFileSync(path, "utf8")).tree, (node, above) => {
      const call = above.at(-1)
      if (node.type === "ObjectExpression" && call?.type === "CallExpression" && lastName(call["callee"]) === "Struct")
        found.push(...fieldsOf(path, node))
    })
    return found
  })

/** Keys that no code names together with what they are in, and what they do all the same. */
const NOT_BY_NAME: Readonly<Record<string, string>> = {
  "schema/Config.ts: $schema": "read by editors",
  "schema/Config.ts: email": "read by the name of its kind, of `BINDINGS`",
  "schema/Config.ts: embedded": "told from the others by the keys that they have",
  "schema/Config.ts: implementation": "read by the name of a job's pool",
  "schema/Config.ts: notion": "read by the name of its kind, of `BINDINGS`",
  "schema/Config.ts: research": "read by the name of a job's pool",
  "schema/Config.ts: review": "read by the name of a job's pool",
  "schema/Config.ts: verification": "read by the name of a job's pool",
  "schema/Voice.ts: provider": "of speech to text, which has one so far",
  "schema/Voice.ts: similarity_boost": "handed on to the voice service with the rest of `voice_settings`",
  "schema/Voice.ts: stability": "handed on to the voice service with the rest of `voice_settings`",
  "schema/Voice.ts: style": "handed on to the voice service with the rest of `voice_settings`",
  "schema/Voice.ts: use_speaker_boost": "handed on to the voice service with the rest of `voice_settings`"
}

/** The compiler's server reads all programs first, which takes some ten seconds of one core. */
const SERVER_MS_MAX = 900_000

describe("every key of config.json", () => {
  it(
    "is read by a line of the program, as a key of what it is in",
    async () => {
      assert.deepStrictEqual(await unreadFields(declared()), Object.keys(NOT_BY_NAME))
    },
    SERVER_MS_MAX
  )

  it("is a field of one of the structs that are looked at", () => {
    const names = new Set([...declared().map(({ name }) => name), ...Object.keys(BINDINGS)])
    const others = leaves().filter((path) => !names.has(path.split(".").findLast((word) => word !== "*") ?? ""))
    assert.deepStrictEqual(others, [])
    assert.isAbove(leaves().length, 90)
  })
})
