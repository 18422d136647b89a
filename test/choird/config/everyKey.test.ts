/** Whatever config.json accepts is read by something, or an operator is told that it does nothing. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { JobPool } from "#schema/JobProfile.ts"
import { unsupportedConfig } from "#src/choird/config/unsupportedConfig.ts"
import { configSchema } from "#src/choirctl/home/initHome.ts"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import { CONFIG } from "../../support/stores.ts"

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

const account = { smtp_host: "h", smtp_port: 25, imap_host: "h", imap_port: 143, secret: "k" }
const tts = { voice: { provider: "elevenlabs", model_id: "m", endpoint: "https://h", secret: "k" } }
const [agent_id = "", agent] = Object.entries(CONFIG.agents)[0] ?? []
const bound = (more: object) => ({ agents: { [agent_id]: { ...agent, defaults: { ...agent?.defaults, ...more } } } })

/** Keys that nothing reads, by the beginning of their paths, each with a configuration that has them. */
const IDLE: Readonly<Record<string, object>> = {
  "tts.": { tts },
  "voice_profiles.": { tts, voice_profiles: { calm: { tts: "voice", voice_id: "v" } } },
  "notion_integrations.": { notion_integrations: { notes: { secret: "k" } } },
  "email_accounts.": { email_accounts: { post: account } },
  "search.": { search: { web: { secret: "k" } } },
  "agents.*.defaults.voice_profile": {
    tts,
    voice_profiles: { calm: { tts: "voice", voice_id: "v" } },
    ...bound({ voice_profile: "calm" })
  },
  "agents.*.defaults.notion": { notion_integrations: { notes: { secret: "k" } }, ...bound({ notion: "notes" }) },
  "agents.*.defaults.email": { email_accounts: { post: account }, ...bound({ email: "post" }) }
}
const isIdle = (path: string) =>
  Object.keys(IDLE).some((start) => path === start || (start.endsWith(".") && path.startsWith(start)))

/** Read by people and their editors. */
const FOR_PEOPLE = new Set(["$schema"])

/** Keys that the program reads by the value of another: `pools[pool]`. Each pool of a profile has one. */
const BY_VALUE = new Set(JobPool.literals.map((pool) => `jobs.pools.${pool}`))

const sources = (folder: string): string =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !name.endsWith("unsupportedConfig.ts"))
    .map((name) => readFileSync(join(folder, name), "utf8"))
    .join("\n")

describe("every key of config.json", () => {
  it("is named by a line of the program, unless it is one that an operator is warned of", () => {
    const text = sources(join(packageFolder, "src"))
    const unread = leaves().filter(
      (path) =>
        !isIdle(path) &&
        !FOR_PEOPLE.has(path) &&
        !BY_VALUE.has(path) &&
        !new RegExp(`\\b${path.split(".").at(-1) ?? ""}\\b`, "u").test(text)
    )
    assert.deepStrictEqual(unread, [])
    assert.isAbove(leaves().length, 90)
  })

  for (const [path, more] of Object.entries(IDLE)) {
    it(`is warned of where it is ${path} and does nothing`, () => {
      const decode = Schema.decodeUnknownSync(Config)
      const before = new Set(unsupportedConfig(decode(CONFIG)))
      const told = unsupportedConfig(decode({ ...CONFIG, ...more })).filter((line) => !before.has(line))
      const name = path.replaceAll("*", agent_id).replace(/\.$/u, "")
      assert.isTrue(
        told.some((line) => line.includes(name)),
        `${name}: ${told.join("; ")}`
      )
    })
  }
})
