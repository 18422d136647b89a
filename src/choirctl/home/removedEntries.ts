/** Bots and people taken out of config.json, unless something there still needs them. */
import { Effect } from "effect"
import { Config } from "#schema/Config.ts"
import type { ResourceName } from "#schema/Ids.ts"
import { failed } from "#src/choirctl/terminal/failure.ts"
import { configPath } from "#src/choirctl/terminal/root.ts"
import { secretReferences } from "#src/shared/config/configFiles.ts"
import { decodeFile } from "#src/shared/config/decode.ts"
import { editJson, editJsonAt } from "#src/shared/config/jsonEdits.ts"
import { withHomeFilesLock } from "#src/shared/files/homeFilesLock.ts"
import { type JsonObject, readConfigText, sectionOf, writePrivate } from "./homeFiles.ts"

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

const requireEntry = (written: JsonObject, section: "dms" | "gateways", name: ResourceName) => {
  const names = Object.keys(sectionOf(written, section))
  const kind = section === "dms" ? "DM" : "gateway"
  return names.includes(name)
    ? Effect.void
    : failed(
        `UNKNOWN_${kind.toUpperCase()}`,
        `config.json has no ${kind} ${name}`,
        `known: ${names.join(", ") || "none"}`
      )
}

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
  const left = secretReferences(yield* decodeFile(Config)(path, text))
  const isUnused = typeof secret === "string" && left.every((reference) => reference.secret !== secret)
  return { paths: [`gateways.${name}`], agents: [], secret: isUnused ? secret : undefined, text } satisfies Removal
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
