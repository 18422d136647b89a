/** First-time setup: a home in which choird starts. Makes what is missing and never changes what is there. */
import { realpathSync } from "node:fs"
import { join } from "node:path"
import { Effect, FileSystem, JsonSchema, type Redacted, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import type { ModelApi } from "#schema/Continuation.ts"
import type { SecretsFile } from "#schema/Secrets.ts"
import { configError } from "#src/choirctl/terminal/failure.ts"
import { configPath } from "#src/choirctl/terminal/root.ts"
import { clearTextProblems } from "#src/shared/config/clearText.ts"
import { loadSecrets } from "#src/shared/config/configFiles.ts"
import { decodeFile, InvalidFile } from "#src/shared/config/decode.ts"
import { withHomeFilesLock } from "#src/shared/files/homeFilesLock.ts"
import { DEFAULT_HOME } from "#src/shared/files/homeFolder.ts"
import { HOME_RECORD, newHomeRecord, writeHomeRecord } from "#src/shared/files/homeRecord.ts"
import { finishRestore } from "#src/shared/files/interruptedRestore.ts"
import { createRepo } from "#src/shared/git/scaffold.ts"
import { longHomeProblem } from "#src/shared/files/hostProblems.ts"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"
import { fileText, homePlace, secretsPath, writePrivate } from "./homeFiles.ts"
import { knownModel, knownPrice, type Price } from "./knownModels.ts"
import { personName } from "./personName.ts"
import type { Provider } from "./providers.ts"
import { GLOBAL_STARTER } from "./repositories.ts"
import { addSecrets } from "./secretsFile.ts"
import { removeDraft } from "./setupDraft.ts"

const { definitions, schema } = JsonSchema.toDocumentDraft07(
  Schema.toJsonSchemaDocument(Config, { onExcessProperty: "error" })
)

export const configSchema: Readonly<Record<string, unknown>> = {
  $schema: "http://json-schema.org/draft-07/schema#",
  title: "config.json of Choir",
  ...schema,
  ...(Object.keys(definitions).length === 0 ? {} : { definitions })
}

/** The operator's answers. A key is undefined when it is set later. */
export interface Setup {
  readonly model: {
    readonly provider: Provider
    readonly endpoint: string
    readonly api: ModelApi
    readonly name: string
    readonly secret: string | undefined
    /** A key that is not in secrets.json yet. */
    readonly key: Redacted.Redacted | undefined
    readonly price: Price | undefined
    /** The provider's name of the model that answers when this one cannot. */
    readonly fallback?: string | undefined
  }
  readonly runtime: "auto" | "sandbox" | "process" | "docker"
  /** Whether agents may run in an engine without user namespaces (R38). */
  readonly allow_unmapped_root: boolean
  readonly telegram:
    | {
        /** The admin on Telegram; absent where they pair with a code. */
        readonly user_id: string | undefined
        /** Their name on Telegram, where they sent a code from there. */
        readonly first_name?: string | undefined
        readonly token: Redacted.Redacted | undefined
        /** Where the Bot API is, when it is not at Telegram itself. */
        readonly api_root: string | undefined
      }
    | undefined
  /** The person's time zone; undefined for that of this machine. */
  readonly timezone: string | undefined
}

/** The result of init: paths that it made, paths that existed, and the next commands. */
export interface Initialized {
  readonly home: string
  readonly created: ReadonlyArray<string>
  readonly kept: ReadonlyArray<string>
  readonly next: ReadonlyArray<string>
}

const FOLDERS = ["socks", "repos", "logs", "logs/archive", "data", "images", "sources", "workspaces/main"]
export const TELEGRAM_SECRET = "telegram-token"
const OWNER_FOLDER = 0o700

/** A model's entry in config.json, with the limits that are known of it. */
export const modelEntry = ({
  api,
  endpoint,
  name,
  price,
  provider,
  secret
}: Pick<Setup["model"], "api" | "endpoint" | "name" | "price" | "provider" | "secret">) => {
  const known = provider === "offline" ? undefined : knownModel(provider, name)
  return {
    provider,
    model: name,
    endpoint,
    ...(api === "chat" ? {} : { api }),
    ...(secret === undefined ? {} : { secret }),
    ...(known === undefined ? {} : { max_tokens: known.max_tokens, context_window: known.context_window }),
    ...(price === undefined ? {} : { price: { ...price } })
  }
}

/** The model of a new home and, where one was named, its fallback at the same endpoint and with the same key. */
export const modelsOf = (model: Setup["model"]) => {
  const { fallback, name, price, provider } = model
  const main = modelEntry(model)
  if (fallback === undefined) return { main }
  const second = modelEntry({
    ...model,
    name: fallback,
    price: fallback === name ? price : knownPrice(provider, fallback)
  })
  return { main: { ...main, fallback: ["fallback"] }, fallback: second }
}

/** config.json of a new home; what is not written has its default. */
const skeleton = (home: string, { allow_unmapped_root, model, runtime, telegram, timezone }: Setup) => ({
  $schema: "./config.schema.json",
  global_repo: { url: join(home, "sources", "global"), ref: "main" },
  ...(timezone === undefined ? {} : { timezone }),
  workspaces: { main: { path: join(home, "workspaces", "main") } },
  models: modelsOf(model),
  gateways: {
    terminal: { type: "console" },
    ...(telegram === undefined
      ? {}
      : {
          telegram: {
            type: "telegram",
            secret: TELEGRAM_SECRET,
            ...(telegram.api_root === undefined ? {} : { api_root: telegram.api_root })
          }
        })
  },
  dms: {
    terminal: { gateway: "terminal", user_id: "local", admin: true },
    ...(telegram?.user_id === undefined
      ? {}
      : {
          [personName(telegram.first_name)]: { gateway: "telegram", user_id: telegram.user_id, admin: true }
        })
  },
  postgres: { embedded: true },
  runtime: { type: runtime, ...(allow_unmapped_root ? { allow_unmapped_root } : {}) },
  agents: {},
  approvals: { confirm_external: "tainted" }
})

const secretsOf = ({ model, telegram }: Setup): SecretsFile => ({
  ...(model.secret === undefined || model.key === undefined ? {} : { [model.secret]: model.key }),
  ...(telegram?.token === undefined ? {} : { [TELEGRAM_SECRET]: telegram.token })
})

/** Lets the person in who owns the bot of a new home. */
const PAIR = "choirctl dm pair phone --gateway telegram --admin"

/** The commands that lead on from a new home. */
const nextSteps = (home: string, setup: Setup | undefined, secrets: SecretsFile): ReadonlyArray<string> => [
  ...(home === DEFAULT_HOME ? [] : [`export CHOIR_HOME=${home}`]),
  ...[setup?.model.secret, setup?.telegram === undefined ? undefined : TELEGRAM_SECRET].flatMap((name) =>
    name === undefined || Object.hasOwn(secrets, name) ? [] : [`choirctl secret set ${name}`]
  ),
  "choirctl agent init <agent-id>",
  "choirctl daemon start",
  "choirctl agent build <agent-id>",
  "choirctl agent start <agent-id>",
  ...(setup?.telegram !== undefined && setup.telegram.user_id === undefined ? [PAIR] : []),
  "choirctl chat <agent-id>"
]

/** Only a new or empty folder is made private: changing a full one could lock its other users out. */
const makeHomeFolder = Effect.fnUntraced(function* (home: string) {
  const fs = yield* FileSystem.FileSystem
  const place = yield* Effect.try({
    try: () => {
      finishRestore(home)
      return homePlace(home, "--home")
    },
    catch: (cause) => configError(`${home} cannot be read: ${String(cause)}`, "choose another --home")
  })
  const refuse = (problem: string, fix: string) => configError(`${home} cannot be a home: ${problem}`, fix)
  const long = longHomeProblem(home)
  if (long !== undefined) return yield* refuse(long.problem, long.fix)
  if (place.type === "unusable") return yield* refuse(place.problem, place.fix)
  if (place.type === "missing") yield* fs.makeDirectory(home, { recursive: true, mode: OWNER_FOLDER })
  else if (place.mode === OWNER_FOLDER) return false
  else if (!place.empty)
    return yield* refuse("its permissions are too open, and it is not empty", `chmod 700 ${shellQuoted(home)}`)
  yield* fs.chmod(home, OWNER_FOLDER)
  return place.type === "missing"
})

/** Whether a home has its configuration, and so no question is left to ask. */
export const isConfigured = (home: string) => Effect.flatMap(FileSystem.FileSystem, (fs) => fs.exists(configPath(home)))

/** Makes the folder and secrets.json, so that answers can be kept there. */
export const prepareHome = Effect.fn("prepareHome")(function* (home: string) {
  const fs = yield* FileSystem.FileSystem
  yield* makeHomeFolder(home)
  const secrets = secretsPath(home)
  if (!(yield* fs.exists(secrets))) yield* writePrivate(secrets, fileText({}))
})

/** Makes the home. `setup` is undefined where config.json is already there. */
export const initHome = Effect.fn("initHome")(function* (home: string, setup: Setup | undefined) {
  const fs = yield* FileSystem.FileSystem
  const created: Array<string> = []
  const kept: Array<string> = []
  const make = Effect.fnUntraced(function* <E, R>(path: string, work: Effect.Effect<void, E, R>) {
    if (yield* fs.exists(path)) return void kept.push(path)
    yield* work
    created.push(path)
  })
  ;((yield* makeHomeFolder(home)) ? created : kept).push(home)
  for (const folder of FOLDERS) {
    const path = join(home, folder)
    yield* make(path, fs.makeDirectory(path, { recursive: true, mode: OWNER_FOLDER }))
  }
  const record = join(home, HOME_RECORD)
  yield* make(
    record,
    Effect.try({
      try: () => {
        const real = realpathSync(home)
        writeHomeRecord(real, newHomeRecord(real))
      },
      catch: (cause) => configError(`${record} cannot be written: ${String(cause)}`, "check the owner of the home")
    })
  )
  const repo = join(home, "sources", "global")
  yield* make(repo, createRepo(repo, GLOBAL_STARTER))
  const schema = join(home, "config.schema.json")
  yield* make(schema, writePrivate(schema, fileText(configSchema)))
  const secrets = secretsPath(home)
  const files = Effect.gen(function* () {
    yield* make(secrets, writePrivate(secrets, fileText({})))
    if (setup === undefined) return void kept.push(configPath(home))
    yield* addSecrets(home, secretsOf(setup))
    const text = fileText(skeleton(home, setup))
    const [exposed] = clearTextProblems(yield* decodeFile(Config)(configPath(home), text))
    if (exposed !== undefined)
      return yield* new InvalidFile({ path: configPath(home), problems: `${exposed.path.join(".")} ${exposed.reason}` })
    yield* make(configPath(home), writePrivate(configPath(home), text))
  })
  yield* withHomeFilesLock(home)(files)
  yield* removeDraft(home)
  return { home, created, kept, next: nextSteps(home, setup, yield* loadSecrets(home)) } satisfies Initialized
})
