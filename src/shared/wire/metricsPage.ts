/** The page of metrics as choird serves it and `status` and `doctor` tell of it. */
import { join } from "node:path"
import type { Config } from "#schema/Config.ts"

/** In the home, 0600: the token that choird makes where config.json names no secret. */
const METRICS_TOKEN_FILE = "metrics.token"

export interface MetricsPage {
  readonly url: string
  /** The place of the bearer token: the path of a file, or a secret of secrets.json. */
  readonly token: { readonly file: string } | { readonly secret: string }
}

/** Undefined where no page is configured. */
export const metricsPage = (home: string, { telemetry }: Config): MetricsPage | undefined => {
  if (telemetry.prometheus === undefined) return undefined
  const { listen, secret } = telemetry.prometheus
  const token = secret === undefined ? { file: join(home, METRICS_TOKEN_FILE) } : { secret }
  return { url: `http://${listen}/metrics`, token }
}

/** The place of the token, for people. */
export const tokenText = ({ token }: MetricsPage): string =>
  "file" in token ? token.file : `the secret "${token.secret}"`
