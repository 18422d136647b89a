/**
 * config.json and secrets.json as one snapshot: read, checked and decoded. Both choird at its start and `choirctl config
 * validate` use it, so that what validates also starts.
 */
import { Effect, Redacted, Runtime, Schema } from "effect"
import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, realpathSync, type Stats } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { Config } from "#schema/Config.ts"
import type { SecretName } from "#schema/Ids.ts"
import { SecretsFile } from "#schema/Secrets.ts"
import { initHint } from "#src/shared/files/homeFolder.ts"
import { finishRestore } from "#src/shared/files/interruptedRestore.ts"
import { codeOf } from "#src/shared/files/nofollow.ts"
import { CODECS } from "#src/shared/model/codecs.ts"
import { quirkWarnings } from "#src/shared/model/quirks.ts"
import { syntaxProblem } from "#src/shared/text/jsonSyntax.ts"
import { apiAddress, hasRequestPath } from "#src/shared/wire/apiAddress.ts"
import { clearTextProblems } from "./clearText.ts"
import { keyLines, repeatedKeys } from "./jsonKeys.ts"
import { mistakesOf } from "./configMistakes.ts"
import { decoderText, problemsOf, problemText } from "./configProblems.ts"
import { loopbackModels } from "./offlineEndpoint.ts"
import { resourceSecrets } from "./resourceSecrets.ts"
import { unpricedBudget } from "./unpricedModels.ts"

/** config.json and secrets.json, each. */
export const CONFIG_BYTES_MAX = 1024 * 1024

/** A file of the home, or the home itself, cannot be used. Problems name JSON paths and never a value of secrets.json. */
export class ConfigRefused extends Schema.TaggedError<ConfigRefused>()("ConfigRefused", {
  file: Schema.String,
  problems: Schema.Array(Schema.String),
  hint: Schema.String
}) {
  override readonly [Runtime.errorExitCode] = 78
  override get message() {
    return `${this.file} cannot be used:\n${problemsOf(this.problems).map(problemText).join("\n")}\nTo fix it: ${this.hint}`
  }
}

/** Something that lets choird start and that will stop a part of it. `path` is a JSON path of config.json or secrets.json. */
export interface ConfigWarning {
  readonly path: string
  readonly message: string
}

export interface ConfigFiles {
  /** The real path of the home. */
  readonly home: string
  readonly config: Config
  readonly secrets: SecretsFile
  readonly warnings: ReadonlyArray<ConfigWarning>
}

/** The configuration of a home, as its operator writes it. */
export const CONFIG_FILE = "config.json"
/** A copy of the configuration that choird last worked with, which `choird --last-good` starts with (R59). */
export const LAST_GOOD_FILE = "config.last-good.json"

const VALIDATE = "correct the file, then check it with choirctl config validate"

const refused = (file: string, problem: string, hint: string) => new ConfigRefused({ file, problems: [problem], hint })

const unreadable = (file: string, home: string) => (cause: unknown) => {
  if (cause instanceof ConfigRefused) return cause
  const code = codeOf(cause)
  if (code === "ENOENT") return refused(file, "it does not exist", initHint(home))
  if (code === "ELOOP") return refused(file, "it is a symbolic link", "put the file itself in its place")
  return refused(file, `it cannot be read (${code ?? String(cause)})`, "make it readable for the user that runs choird")
}

const me = () => process.getuid?.() ?? 0

const wrongMode = ({ mode }: Stats, wanted: string) =>
  `its permissions are ${(mode & 0o777).toString(8).padStart(3, "0")} and must be ${wanted}, so that only its owner can use it`

/** The home must be the owner's alone, since anyone who may write there decides what choird runs (R34). */
const openHome = (home: string) =>
  Effect.try({
    try: () => {
      finishRestore(home)
      const stat = lstatSync(home)
      if (stat.isSymbolicLink()) throw refused(home, "it is a symbolic link", "name the folder that it leads to")
      if (!stat.isDirectory()) throw refused(home, "it is not a folder", initHint(home))
      if (stat.uid !== me()) throw refused(home, "it belongs to another user", `chown -R ${me()} ${home}`)
      if ((stat.mode & 0o777) !== 0o700) throw refused(home, wrongMode(stat, "700"), `chmod 700 ${home}`)
      return realpathSync(home)
    },
    catch: unreadable(home, home)
  })

/** Secrets are read through no link and only when their owner alone could have written or read them (R34). */
const readText = (file: string, secret: boolean) =>
  Effect.try({
    try: () => {
      // Without O_NONBLOCK, opening a FIFO would wait for a writer.
      const flags = constants.O_RDONLY | constants.O_NONBLOCK | (secret ? constants.O_NOFOLLOW : 0)
      const descriptor = openSync(file, flags)
      try {
        const stat = fstatSync(descriptor)
        if (stat.isDirectory())
          throw refused(
            file,
            "it is a folder, as Docker makes one instead of a missing file",
            `rmdir ${file}, then ${initHint(dirname(file))}`
          )
        if (!stat.isFile()) throw refused(file, "it is not a regular file", initHint(dirname(file)))
        if (stat.size > CONFIG_BYTES_MAX)
          throw refused(file, `it is larger than ${CONFIG_BYTES_MAX} bytes`, "shorten it")
        if (secret && stat.uid !== me()) throw refused(file, "it belongs to another user", `chown ${me()} ${file}`)
        if (secret && (stat.mode & 0o777) !== 0o600) throw refused(file, wrongMode(stat, "600"), `chmod 600 ${file}`)
        return readFileSync(descriptor, "utf8")
      } finally {
        closeSync(descriptor)
      }
    },
    catch: unreadable(file, dirname(file))
  })

const repeatedProblem = (text: string) => (path: ReadonlyArray<string>) =>
  decoderText({
    path,
    line: keyLines(text)(path),
    reason: "duplicate key; only the last one would take effect"
  })

const decode = <S extends Schema.Constraint & Schema.Top>(schema: S) => {
  const decodeValue = Schema.decodeUnknownEffect(schema, { errors: "all", onExcessProperty: "error" })
  return (file: string, text: string) =>
    Effect.gen(function* () {
      const value = yield* Effect.try({
        try: (): unknown => JSON.parse(text),
        catch: () => refused(file, syntaxProblem(text), VALIDATE)
      })
      const repeated = repeatedKeys(text).map(repeatedProblem(text))
      if (repeated.length > 0) return yield* new ConfigRefused({ file, problems: repeated, hint: VALIDATE })
      return yield* Effect.mapError(
        decodeValue(value),
        ({ message }) => new ConfigRefused({ file, problems: mistakesOf(schema, value, message, text), hint: VALIDATE })
      )
    })
}
const decodeConfig = decode(Config)
const decodeSecrets = decode(SecretsFile)

/** Every place of config.json that names a secret. */
export const secretReferences = (
  config: Config
): ReadonlyArray<{ readonly path: string; readonly secret: SecretName }> =>
  resourceSecrets(config).flatMap(({ path, secret }) =>
    secret === undefined ? [] : [{ path: path.join("."), secret }]
  )

const PLACEHOLDER = /^(\.{3}|<[^<>]*>|change[-_ ]?me|todo|\$\{[^{}]*\}|\$[a-z_]+)$/iu

const placeholders = (value: unknown, path: ReadonlyArray<string>): ReadonlyArray<ConfigWarning> => {
  if (typeof value === "string")
    return PLACEHOLDER.test(value) ? [{ path: path.join("."), message: `"${value}" is a placeholder` }] : []
  if (value === null || typeof value !== "object") return []
  return Object.entries(value).flatMap(([key, inner]) => placeholders(inner, [...path, key]))
}

/** A start in such a workspace is refused (R39); links, which may lead into one as well, are looked at only then. */
const nestedWorkspaces = ({ workspaces }: Config): ReadonlyArray<ConfigWarning> =>
  Object.entries(workspaces).flatMap(([name, { path }]) => {
    const parent = `${dirname(resolve(path))}/`
    const outer = Object.entries(workspaces).find(([, other]) => parent.startsWith(`${resolve(other.path)}/`))?.[0]
    if (outer === undefined) return []
    return [
      { path: `workspaces.${name}.path`, message: `is inside the workspace "${outer}": no agent can be started there` }
    ]
  })

const requestAddresses = ({ models }: Config): ReadonlyArray<ConfigWarning> =>
  Object.entries(models).flatMap(([name, { api, endpoint }]) =>
    hasRequestPath(endpoint)
      ? [
          {
            path: `models.${name}.endpoint`,
            message: `Choir adds ${CODECS[api].path} to it, so every request fails: use ${apiAddress(endpoint)}`
          }
        ]
      : []
  )

/** Telegram names a chat by a number; nothing else ever fits a message. */
const telegramIds = ({ dms, gateways }: Config): ReadonlyArray<ConfigWarning> =>
  Object.entries(dms).flatMap(([name, { gateway, user_id }]) =>
    Object.entries(gateways).some(([key, { type }]) => key === gateway && type === "telegram") &&
    !/^-?\d+$/u.test(user_id)
      ? [
          {
            path: `dms.${name}.user_id`,
            message: `is not a number, as Telegram has them, so no message ever fits: choirctl dm pair ${name} --gateway ${gateway} finds it out`
          }
        ]
      : []
  )

/** Bytes that no text has are read as a sign of their own, which then stands in a name or a prompt. */
const oddBytes = (file: string, text: string): ReadonlyArray<ConfigWarning> => {
  const at = text.indexOf("\u{fffd}")
  if (at === -1) return []
  const line = text.slice(0, at).split("\n").length
  return [{ path: file, message: `has bytes that are not UTF-8 in line ${line}: save it as UTF-8` }]
}

const modelQuirks = ({ models }: Config): ReadonlyArray<ConfigWarning> =>
  Object.entries(models).flatMap(([name, model]) =>
    quirkWarnings(model).map(({ key, message }) => ({ path: `models.${name}.${key}`, message }))
  )

const warningsOf = (config: Config, secrets: SecretsFile): ReadonlyArray<ConfigWarning> => [
  ...secretReferences(config).flatMap(({ path, secret }) =>
    hasValue(secrets, secret)
      ? []
      : [{ path, message: `the secret "${secret}" has no value yet: choirctl secret set ${secret}` }]
  ),
  ...Object.entries(secrets).flatMap(([name, value]) =>
    PLACEHOLDER.test(Redacted.value(value)) ? [{ path: name, message: `the secret "${name}" is a placeholder` }] : []
  ),
  ...placeholders(config, []),
  ...nestedWorkspaces(config),
  ...requestAddresses(config),
  ...telegramIds(config),
  ...modelQuirks(config),
  ...unpricedBudget(config),
  ...(config.runtime.type === "docker"
    ? loopbackModels(config).map((message) => ({ path: "runtime.type", message }))
    : [])
]

/** Whether secrets.json holds a value for the name; an empty one counts as none. */
export const hasValue = (secrets: SecretsFile, name: SecretName): boolean =>
  Object.hasOwn(secrets, name) && Redacted.value(secrets[name] ?? Redacted.make("")) !== ""

const readSecrets = (folder: string) => {
  const file = join(folder, "secrets.json")
  return Effect.flatMap(readText(file, true), (text) => decodeSecrets(file, text))
}

/** Reads secrets.json alone, for what must work while config.json is still wrong (R34). */
export const loadSecrets = Effect.fn("configFiles.loadSecrets")(function* (
  home: string
): Effect.fn.Return<SecretsFile, ConfigRefused> {
  return yield* readSecrets(yield* openHome(home))
})

/** Reads both files of a home, once; `name` is that of the configuration. Fails with the problem and the command or change that fixes it (R34, R57). */
export const loadFiles = Effect.fn("configFiles.load")(function* (
  home: string,
  name: string = CONFIG_FILE
): Effect.fn.Return<ConfigFiles, ConfigRefused> {
  const folder = yield* openHome(home)
  const configFile = join(folder, name)
  const text = yield* readText(configFile, false)
  const config = yield* decodeConfig(configFile, text)
  const exposed = clearTextProblems(config)
  if (exposed.length > 0)
    return yield* new ConfigRefused({ file: configFile, problems: exposed.map(decoderText), hint: VALIDATE })
  const secrets = yield* readSecrets(folder)
  return { home: folder, config, secrets, warnings: [...oddBytes(name, text), ...warningsOf(config, secrets)] }
})
