/** Bots, people, models and agents taken out of config.json, unless something there still needs them. */
import { Effect } from "effect"
import { Config } from "#schema/Config.ts"
import type { AgentId, ResourceName } from "#schema/Ids.ts"
import { failed } from "#src/choirctl/terminal/failure.ts"
import { configPath } from "#src/choirctl/terminal/root.ts"
import { secretReferences } from "#src/shared/config/configFiles.ts"
import { decodeFile } from "#src/shared/config/decode.ts"
import { editJson, editJsonAt } from "#src/shared/config/jsonEdits.ts"
import { withHomeFilesLock } from "#src/shared/files/homeFilesLock.ts"
import { type JsonObject, readConfigText, sectionOf, writePrivate } from "./homeFiles.ts"
import { useModel } from "./modelUse.ts"

/** The configuration without an entry, as it is to be written. */
export interface Removal {
  /** Dotted paths that change. */
  readonly paths: ReadonlyArray<string>
  /** Agents that lose a DM of theirs. */
  readonly agents: ReadonlyArray<string>
  /** A secret that nothing refers to afterwards. */
  readonly secret: string | undefined
  readonly text: string
}

const KINDS = { agents: "agent", dms: "DM", gateways: "gateway", models: "model" } as const

const requireEntry = (written: JsonObject, section: keyof typeof KINDS, name: string) => {
  const names = Object.keys(sectionOf(written, section))
  const kind = KINDS[section]
  return names.includes(name)
    ? Effect.void
    : failed(
        `UNKNOWN_${kind.toUpperCase()}`,
        `config.json has no ${kind} ${name}`,
        `known: ${names.join(", ") || "none"}`
      )
}

/** A secret that a removed entry named and nothing else names. */
const unusedSecret = (left: Config, secret: unknown): string | undefined =>
  typeof secret === "string" && secretReferences(left).every((reference) => reference.secret !== secret)
    ? secret
    : undefined

/** A bot goes once nobody talks to it any longer. */
export const gatewayRemoval = Effect.fnUntraced(function* (home: string, name: ResourceName) {
  const path = configPath(home)
  const { text: before, written } = yield* readConfigText(home)
  yield* requireEntry(written, "gateways", name)
  const users = Object.keys(sectionOf(written, "dms")).filter(
    (dm) => sectionOf(sectionOf(written, "dms"), dm)["gateway"] === name
  )
  if (users.length > 0)
    return yield* failed(
      "GATEWAY_IN_USE",
      `the gateway ${name} is still used by ${users.length === 1 ? "the DM" : "the DMs"} ${users.join(", ")}`,
      users.map((dm) => `choirctl dm remove ${dm}`).join(" && ")
    )
  const text = editJson(before, ["gateways", name], undefined)
  const { secret } = sectionOf(sectionOf(written, "gateways"), name)
  const left = yield* decodeFile(Config)(path, text)
  return { paths: [`gateways.${name}`], agents: [], secret: unusedSecret(left, secret), text } satisfies Removal
})

/** A model goes once no agent speaks with it and no other model falls back to it. */
export const modelRemoval = Effect.fnUntraced(function* (home: string, name: ResourceName) {
  const path = configPath(home)
  const { text: before, written } = yield* readConfigText(home)
  yield* requireEntry(written, "models", name)
  const { agents, models } = yield* decodeFile(Config)(path, before)
  const speakers = Object.entries(agents).flatMap(([id, { defaults }]) =>
    defaults.llm === name || defaults.core_llm === name ? [id] : []
  )
  const users = [
    ...speakers.map((id) => `the agent ${id}`),
    ...Object.entries(models).flatMap(([other, { fallback }]) =>
      fallback.includes(name) ? [`the model ${other}, as its fallback`] : []
    )
  ]
  if (users.length > 0)
    return yield* failed(
      "MODEL_IN_USE",
      `the model ${name} is used by ${users.join(" and ")}`,
      speakers.length === 0
        ? "remove it from fallback in config.json first"
        : `choose another one first: ${useModel(speakers.slice(0, 1), undefined)}`
    )
  const text = editJson(before, ["models", name], undefined)
  const { secret } = sectionOf(sectionOf(written, "models"), name)
  const left = yield* decodeFile(Config)(path, text)
  return { paths: [`models.${name}`], agents: [], secret: unusedSecret(left, secret), text } satisfies Removal
})

/** The entries of config.json that only this agent had, its own included: a DM at the console under its own name, and its grants. */
const ownEntries = (written: JsonObject, id: AgentId): ReadonlyArray<ReadonlyArray<string>> => {
  const agents = sectionOf(written, "agents")
  const others = Object.keys(agents).filter((other) => other !== id)
  const isShared = others.some((other) =>
    [sectionOf(sectionOf(agents, other), "defaults")["dm"] ?? []].flat().includes(id)
  )
  const dm = sectionOf(sectionOf(written, "dms"), id)
  const gateway = sectionOf(sectionOf(written, "gateways"), typeof dm["gateway"] === "string" ? dm["gateway"] : "")
  const { cross_read } = sectionOf(written, "memory")
  return [
    ["agents", id],
    ...(dm["user_id"] === id && gateway["type"] === "console" && !isShared ? [["dms", id]] : []),
    ...(Object.hasOwn(sectionOf(sectionOf(written, "skills"), "grants"), id) ? [["skills", "grants", id]] : []),
    ...(Array.isArray(cross_read) && cross_read.includes(id) ? [["memory", "cross_read"]] : [])
  ]
}

/** An agent goes with what only it had in config.json. Its files, its sessions and its memory stay. */
export const agentRemoval = Effect.fnUntraced(function* (home: string, id: AgentId) {
  const { text: before, written } = yield* readConfigText(home)
  yield* requireEntry(written, "agents", id)
  const places = ownEntries(written, id)
  const { cross_read } = sectionOf(written, "memory")
  const readers = Array.isArray(cross_read) ? cross_read.filter((other) => other !== id) : []
  const text = editJsonAt(
    before,
    places.map((place) => [place, place[0] === "memory" ? readers : undefined] as const)
  )
  yield* decodeFile(Config)(configPath(home), text)
  return {
    paths: places.map((place) => place.join(".")),
    agents: [],
    secret: undefined,
    text
  } satisfies Removal
})

/** A DM goes, and leaves the lists of the agents that have others. */
export const dmRemoval = Effect.fnUntraced(function* (home: string, name: ResourceName) {
  const { text: before, written } = yield* readConfigText(home)
  yield* requireEntry(written, "dms", name)
  const agents = sectionOf(written, "agents")
  const changed = Object.keys(agents).flatMap((id) => {
    const dms = [sectionOf(sectionOf(agents, id), "defaults")["dm"] ?? []].flat()
    if (!dms.includes(name)) return []
    const left = dms.filter((dm) => dm !== name)
    return [{ id, left, dm: left.length === 1 ? (left[0] ?? left) : left }]
  })
  const alone = changed.find(({ left }) => left.length === 0)
  if (alone !== undefined)
    return yield* failed(
      "DM_IN_USE",
      `${name} is the only DM of ${alone.id}`,
      `give ${alone.id} another one first, in agents.${alone.id}.defaults.dm of config.json or with choirctl dm pair`
    )
  const text = editJsonAt(before, [
    [["dms", name], undefined],
    ...changed.map(({ dm, id }) => [["agents", id, "defaults", "dm"], dm] as const)
  ])
  yield* decodeFile(Config)(configPath(home), text)
  const ids = changed.map(({ id }) => id)
  const paths = [`dms.${name}`, ...ids.map((id) => `agents.${id}.defaults.dm`)]
  return { paths, agents: ids, secret: undefined, text } satisfies Removal
})

/** Writes a removal, made once more from the file as it is now. */
export const writeRemoval = <E, R>(home: string, removal: Effect.Effect<Removal, E, R>) =>
  withHomeFilesLock(home)(Effect.tap(removal, ({ text }) => writePrivate(configPath(home), text)))
