/** The models, bots and metrics page of config.json, and the browser, each tried once for `choirctl doctor` and `choirctl model test`. */
import { chownSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { Effect, Option, Redacted, Result, Schema } from "effect"
import type { Config, Model } from "#schema/Config.ts"
import type { SecretName } from "#schema/Ids.ts"
import type { SecretsFile } from "#schema/Secrets.ts"
import { isLoopback, isServedHere } from "#src/shared/config/offlineEndpoint.ts"
import { metricsPage, type MetricsPage, tokenText } from "#src/shared/wire/metricsPage.ts"
import { AS_NOBODY, type Check, check, tryProgram } from "./hostChecks.ts"
import { type Tried, triedWords, tryModel } from "./modelCheck.ts"
import { ask as askUrl, CheckFailed } from "./checkHttp.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { valueOf } from "./secretValue.ts"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { CHROMIUM_FIX, chromiumProgram } from "#src/shared/web/chromium.ts"
import { CHROMIUM_FLAGS } from "#src/shared/web/chromiumFlags.ts"

/** Telegram's own servers, where config.json names no others. */
export const TELEGRAM_API_ROOT = "https://api.telegram.org"

const Me = Schema.fromJsonString(
  Schema.Struct({ result: Schema.Struct({ username: Schema.String.check(Schema.isPattern(/^\w{1,64}$/u)) }) })
)
const decode = Schema.decodeUnknownResult(Me)

/** A token as @BotFather hands it out. Anything else would only end up in an address. */
export const looksLikeToken = (token: string): boolean => /^\d+:[\w-]+$/u.test(token)

const wrongToken = (problem: string) =>
  new CheckFailed({ obstacle: "key", problem, fix: "Copy the bot's token again from @BotFather" })

/** Asks Telegram who the bot is; answers its name, without the @. */
export const tryBot = Effect.fn("tryBot")(function* (api_root: string, token: Redacted.Redacted) {
  const value = Redacted.value(token)
  if (!looksLikeToken(value)) return yield* wrongToken("this is not a bot's token, which looks like 123456789:AAE...")
  const { host } = new URL(api_root)
  const { status, text } = yield* askUrl(`${api_root.replace(/\/+$/u, "")}/bot${value}/getMe`, {})
  if (status === 401 || status === 404) return yield* wrongToken(`Telegram refuses the bot's token (${status})`)
  if (status === 429 || status >= 500)
    return yield* new CheckFailed({
      obstacle: "busy",
      problem: `${host} cannot answer at the moment (${status})`,
      fix: "Try again later"
    })
  const me = decode(text)
  if (status !== 200 || Result.isFailure(me))
    return yield* new CheckFailed({
      obstacle: "address",
      problem: `${host} does not respond like Telegram's Bot API (${status})`,
      fix: "Check api_root of the gateway"
    })
  return me.success.result.username
})

const TITLE = "metrics"

const tokenOf = ({ token }: MetricsPage, secrets: SecretsFile) =>
  "file" in token
    ? Effect.option(Effect.try({ try: () => readFileSync(token.file, "utf8").trim(), catch: () => undefined }))
    : Effect.succeedSome(Redacted.value(secrets[token.secret as SecretName] ?? Redacted.make("")))

/** The checks of the metrics page; empty where config.json has none. `running` is whether choird runs. */
export const metricsChecks = Effect.fn("metricsChecks")(function* (
  home: string,
  config: Config,
  secrets: SecretsFile,
  running: boolean
): Effect.fn.Return<ReadonlyArray<Check>> {
  const page = metricsPage(home, config)
  if (page === undefined) return []
  const where = `${page.url}, bearer token in ${tokenText(page)}`
  if (!running) return [check(TITLE, "skip", `${where}, while choird runs`)]
  const token = yield* tokenOf(page, secrets)
  if (token._tag === "None") return [check(TITLE, "fail", `${tokenText(page)} cannot be read`, "choirctl logs choird")]
  const request = askUrl(page.url, { headers: { authorization: `Bearer ${token.value}` } })
  const found = yield* Effect.match(request, {
    onFailure: ({ problem }) => check(TITLE, "fail", problem, "choirctl logs choird says why the page is not served"),
    onSuccess: ({ status }) =>
      status === 200
        ? check(TITLE, "ok", where)
        : check(
            TITLE,
            "fail",
            `${page.url} answers ${status}`,
            "restart choird, or choose another port in telemetry.prometheus.listen"
          )
  })
  return [found]
})

/** How many services are asked at once. */
const CHECKS_AT_ONCE = 4

/** The warning of a model whose cost nobody knows: without a price, on no machine of one's own, and from a provider that does not say it itself. */
export const priceWarning = (
  { endpoint, price }: Pick<Model, "endpoint" | "price">,
  { cost_usd }: Pick<Tried["usage"], "cost_usd">
): ReadonlyArray<string> =>
  price !== undefined || cost_usd !== undefined || isLoopback(endpoint)
    ? []
    : ["its price is unknown, so max_cost_usd does not count it: set its price in config.json"]

/** The offline model where choird serves it: at an address that choird tells only its agents and its operator. */
const servedHere = Effect.fnUntraced(function* (model: Model) {
  const { endpoint } = yield* ask("system", (choird) => choird.offlineModel()).pipe(
    Effect.mapError(
      ({ hint, problem }) =>
        new CheckFailed({
          obstacle: "unreachable",
          problem,
          fix: hint ?? "choirctl status says why it does not answer"
        })
    )
  )
  return { ...model, endpoint }
})

/** Tries a model as config.json has it. The offline model answers while choird runs. */
export const tryConfigured = Effect.fnUntraced(function* (model: Model, secrets: SecretsFile) {
  if (isServedHere(model)) return yield* tryModel(yield* servedHere(model), undefined)
  return yield* Effect.flatMap(valueOf(secrets, model.secret), (key) =>
    tryModel(model, key).pipe(
      Effect.map((tried): Tried => ({ ...tried, warnings: [...tried.warnings, ...priceWarning(model, tried.usage)] })),
      Effect.mapError((error) => {
        const { fix, obstacle, problem } = error
        return obstacle === "key" && model.secret !== undefined
          ? new CheckFailed({ obstacle, problem, fix: `${fix}, then: choirctl secret set ${model.secret}` })
          : error
      })
    )
  )
})

/** The models that agents use, fallbacks included; all of them while there is no agent. */
const usedModels = ({ agents, models }: Config): ReadonlyArray<readonly [string, Model]> => {
  const all = Object.entries(models)
  const bound = Object.values(agents).flatMap(({ defaults: { core_llm, llm } }) => [llm, core_llm ?? llm])
  if (bound.length === 0) return all
  const used = new Set<string>([...bound, ...bound.flatMap((name) => models[name]?.fallback ?? [])])
  return all.filter(([name]) => used.has(name))
}

const modelCheck = Effect.fnUntraced(function* (name: string, model: Model, secrets: SecretsFile, running: boolean) {
  const title = `model ${name}`
  if (isServedHere(model) && !running)
    return check(title, "skip", "the offline model, which choird serves while it runs")
  return yield* tryConfigured(model, secrets).pipe(
    Effect.match({
      onFailure: ({ fix, problem }) => check(title, "fail", problem, fix),
      onSuccess: (tried) => check(title, "ok", triedWords(model.model, tried))
    })
  )
})

const botCheck = Effect.fnUntraced(function* (
  name: string,
  gateway: Extract<Config["gateways"][string & keyof Config["gateways"]], { readonly type: "telegram" }>,
  secrets: SecretsFile
) {
  const tried = Effect.flatMap(valueOf(secrets, gateway.secret), (token) =>
    tryBot(gateway.api_root, token ?? Redacted.make(""))
  )
  return yield* Effect.match(tried, {
    onFailure: ({ fix, problem }) => check(`gateway ${name}`, "fail", problem, fix),
    onSuccess: (username) => check(`gateway ${name}`, "ok", `@${username}`)
  })
})

/** Asks every model that agents use for one tool call, and every bot for its name. `running` is whether choird runs. */
export const serviceChecks = Effect.fn("serviceChecks")(function* (
  config: Config,
  secrets: SecretsFile,
  running: boolean
) {
  const bots = Object.entries(config.gateways).flatMap(([name, gateway]) =>
    gateway.type === "telegram" ? [botCheck(name, gateway, secrets)] : []
  )
  const models = usedModels(config).map(([name, model]) => modelCheck(name, model, secrets, running))
  const checks: ReadonlyArray<Check> = yield* Effect.all([...models, ...bots], { concurrency: CHECKS_AT_ONCE })
  return [
    ...(models.length === 0 ? [check("models", "skip", "config.json has no model")] : []),
    ...checks,
    ...(bots.length === 0 ? [check("telegram", "skip", "config.json has no bot")] : [])
  ] satisfies ReadonlyArray<Check>
})

const NOBODY = 65_534
const FLAGS = ["--headless", "--disable-extensions", "--disable-default-apps", ...CHROMIUM_FLAGS]

const folder = Effect.acquireRelease(
  Effect.try(() => {
    const path = mkdtempSync(join(tmpdir(), "choir-doctor-"))
    if (process.getuid?.() === 0) chownSync(path, NOBODY, NOBODY)
    return path
  }),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true, maxRetries: 10 }))
)

const SANDBOX_FIX =
  "allow user namespaces: sysctl -w kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0"

/** @param code how Chromium ended, if it did. */
export const browserResult = (program: string | undefined, code: number | undefined, isRoot: boolean): Check => {
  if (program === undefined)
    return check("browser", "warn", "Chromium is not installed, so agents read pages without a browser", CHROMIUM_FIX)
  if (code === 0) return check("browser", "ok", `${program}, in its own sandbox`)
  return isRoot
    ? check(
        "browser",
        "warn",
        "Chromium does not start in its own sandbox; choird runs it without one, as a separate user",
        SANDBOX_FIX
      )
    : check("browser", "warn", "Chromium does not start in its own sandbox, so browsing will fail", SANDBOX_FIX)
}

/** Whether agents have a browser here: starts Chromium once as choird does, in its own sandbox, and under an unprivileged uid if this is root. */
export const browserCheck = Effect.gen(function* () {
  const program = chromiumProgram()
  const isRoot = process.getuid?.() === 0
  if (program === undefined) return browserResult(program, undefined, isRoot)
  const home = yield* folder
  const command = [
    ...(isRoot ? AS_NOBODY : []),
    "env",
    `HOME=${home}`,
    program,
    ...FLAGS,
    `--user-data-dir=${home}/profile`,
    "--dump-dom",
    "about:blank"
  ]
  const [first = "", ...args] = command
  const ran = yield* tryProgram(first, args)
  return browserResult(program, Option.getOrUndefined(ran)?.code, isRoot)
}).pipe(
  Effect.scoped,
  // Another check says what is wrong with that folder.
  Effect.catchTag("UnknownError", () =>
    Effect.succeed(check("browser", "skip", "a browser needs the folder for temporary files"))
  )
)
