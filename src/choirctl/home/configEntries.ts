/** New entries of config.json, such as a bot or a model, each with its secret in secrets.json. */
import { Effect, type Redacted } from "effect"
import { Config } from "#schema/Config.ts"
import type { AgentId, ResourceName, SecretName } from "#schema/Ids.ts"
import { failed, usageError } from "#src/choirctl/terminal/failure.ts"
import { configPath } from "#src/choirctl/terminal/root.ts"
import { clearTextProblems } from "#src/shared/config/clearText.ts"
import { decodeFile, InvalidFile } from "#src/shared/config/decode.ts"
import { editJsonAt, type JsonEdit } from "#src/shared/config/jsonEdits.ts"
import { withHomeFilesLock } from "#src/shared/files/homeFilesLock.ts"
import { type JsonObject, readConfigText, sectionOf, writePrivate } from "./homeFiles.ts"
import { setSecret } from "./secretsFile.ts"

export interface NewEntry {
  readonly section: "gateways" | "models"
  readonly name: ResourceName
  readonly value: JsonObject
  /** The value is undefined where secrets.json already has one. */
  readonly secret: { readonly name: SecretName; readonly value: Redacted.Redacted | undefined } | undefined
  /** An agent whose edge and core jobs use the new model by default. */
  readonly agent?: AgentId | undefined
  /** A model that the new one answers for when that one cannot. */
  readonly fallback_for?: ResourceName | undefined
}

const requireKnown = (section: JsonObject, name: string, noun: "agent" | "model") =>
  Object.hasOwn(section, name)
    ? Effect.void
    : usageError(`there is no ${noun} ${name} in config.json`, `known: ${Object.keys(section).join(", ") || "none"}`)

/** A new fallback of one of the models of config.json, which is asked after those that it has. */
const asFallback = Effect.fnUntraced(function* (models: JsonObject, of: ResourceName, name: ResourceName) {
  yield* requireKnown(models, of, "model")
  const { fallback } = sectionOf(models, of)
  return [
    ["models", of, "fallback"],
    [...(Array.isArray(fallback) ? fallback : []), name]
  ] satisfies JsonEdit
})

/** @param agents the agents of config.json as they stand there. */
const usedBy = Effect.fnUntraced(function* (agents: JsonObject, id: AgentId, model: ResourceName) {
  yield* requireKnown(agents, id, "agent")
  return [["agents", id, "defaults", "llm"], model] satisfies JsonEdit
})

/** The text of config.json with a new entry; nothing is written. */
const withEntry = Effect.fnUntraced(function* (home: string, { agent, fallback_for, name, section, value }: NewEntry) {
  const path = configPath(home)
  const { text: before, written } = yield* readConfigText(home)
  const entries = sectionOf(written, section)
  const kind = section.slice(0, -1)
  if (Object.hasOwn(entries, name))
    return yield* failed(
      `${kind.toUpperCase()}_EXISTS`,
      `config.json already has a ${kind} ${name}`,
      "choose another name"
    )
  const text = editJsonAt(before, [
    [[section, name], value],
    ...(agent === undefined ? [] : [yield* usedBy(sectionOf(written, "agents"), agent, name)]),
    ...(fallback_for === undefined ? [] : [yield* asFallback(entries, fallback_for, name)])
  ])
  const [exposed] = clearTextProblems(yield* decodeFile(Config)(path, text))
  if (exposed !== undefined)
    return yield* new InvalidFile({ path, problems: `${exposed.path.join(".")} ${exposed.reason}` })
  return text
})

/**
 * Adds an entry, and returns the dotted paths that are new. The secret comes first, so that config.json never names one without a
 * value; before that the entry is tried, so that a refused one leaves no secret behind.
 */
export const addEntry = Effect.fn("addEntry")(function* (home: string, entry: NewEntry) {
  const { agent, fallback_for, name, secret, section } = entry
  yield* withEntry(home, entry)
  if (secret?.value !== undefined) yield* setSecret(home, secret.name, secret.value)
  const write = Effect.flatMap(withEntry(home, entry), (text) => writePrivate(configPath(home), text))
  yield* withHomeFilesLock(home)(write)
  return [
    `${section}.${name}`,
    ...(secret === undefined ? [] : [`secrets.${secret.name}`]),
    ...(agent === undefined ? [] : [`agents.${agent}.defaults.llm`]),
    ...(fallback_for === undefined ? [] : [`models.${fallback_for}.fallback`])
  ]
})

/** Writes defaults of an agent, and returns the dotted paths that changed. */
export const setDefaults = Effect.fn("setDefaults")(function* (
  home: string,
  id: AgentId,
  defaults: Readonly<Partial<Record<"core_llm" | "llm", ResourceName>>>
) {
  const entries = Object.entries(defaults)
  const write = Effect.gen(function* () {
    const { text: before, written } = yield* readConfigText(home)
    yield* requireKnown(sectionOf(written, "agents"), id, "agent")
    for (const [, model] of entries) yield* requireKnown(sectionOf(written, "models"), model, "model")
    const text = editJsonAt(
      before,
      entries.map(([key, model]) => [["agents", id, "defaults", key], model] as const)
    )
    yield* decodeFile(Config)(configPath(home), text)
    yield* writePrivate(configPath(home), text)
  })
  yield* withHomeFilesLock(home)(write)
  return entries.map(([key]) => `agents.${id}.defaults.${key}`)
})
