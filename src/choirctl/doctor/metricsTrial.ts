/** The page of metrics, read once as Prometheus reads it. */
import { readFileSync } from "node:fs"
import { Effect, Redacted } from "effect"
import type { Config } from "#schema/Config.ts"
import type { SecretName } from "#schema/Ids.ts"
import type { SecretsFile } from "#schema/Secrets.ts"
import { metricsPage, type MetricsPage, tokenText } from "#src/shared/wire/metricsPage.ts"
import { check, type Check } from "./doctorTrials.ts"
import { ask } from "./trialHttp.ts"

const TITLE = "metrics"

const tokenOf = ({ token }: MetricsPage, secrets: SecretsFile) =>
  "file" in token
    ? Effect.option(Effect.try({ try: () => readFileSync(token.file, "utf8").trim(), catch: () => undefined }))
    : Effect.succeedSome(Redacted.value(secrets[token.secret as SecretName] ?? Redacted.make("")))

/** Nothing where config.json has no page. `running` is whether choird runs. */
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
  const request = ask(page.url, { headers: { authorization: `Bearer ${token.value}` } })
  const found = yield* Effect.match(request, {
    onFailure: ({ problem }) => check(TITLE, "fail", problem, "choirctl logs choird says why the page is not served"),
    onSuccess: ({ status }) =>
      status === 200
        ? check(TITLE, "ok", where)
        : check(
            TITLE,
            "fail",
            `${page.url} answers ${status}`,
            "start choird again, or choose another port in telemetry.prometheus.listen"
          )
  })
  return [found]
})
