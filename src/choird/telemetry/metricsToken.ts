/** The bearer token of the page of metrics: every local process can reach the port, agents in the sandbox included. */
import { randomBytes } from "node:crypto"
import { readFileSync } from "node:fs"
import { Effect, Redacted, Result, Schema } from "effect"
import type { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import type { MetricsPage } from "#src/shared/wire/metricsPage.ts"
import { SecretName } from "#schema/Ids.ts"
import { writeWhole } from "#src/shared/files/writeWhole.ts"

class TokenMissing extends Schema.TaggedError<TokenMissing>()("TokenMissing", { problem: Schema.String }) {
  override get message() {
    return `the metrics are not served: ${this.problem}`
  }
}

const TOKEN = /^[0-9a-f]{64}\n?$/u

/** The token of the file, which scrapers keep reading after a restart; one that is missing or damaged is made. */
const ownToken = (file: string) =>
  Effect.try({
    try: () => {
      const kept = Result.getOrElse(
        Result.try(() => readFileSync(file, "utf8")),
        () => ""
      )
      if (TOKEN.test(kept)) return Redacted.make(kept.trim())
      const token = randomBytes(32).toString("hex")
      writeWhole(file, `${token}\n`)
      return Redacted.make(token)
    },
    catch: (error) => new TokenMissing({ problem: `${file} cannot be written: ${String(error)}` })
  })

export const metricsToken = (store: ConfigStore["Service"], { token }: MetricsPage) =>
  "file" in token
    ? ownToken(token.file)
    : Effect.mapError(
        store.secret(SecretName.make(token.secret)),
        ({ hint, message }) => new TokenMissing({ problem: `${message}: ${hint}` })
      )
