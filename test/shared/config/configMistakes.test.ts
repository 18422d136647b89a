import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { mistakesOf } from "#src/shared/config/configMistakes.ts"
import { problemsOf, problemText } from "#src/shared/config/configProblems.ts"
import { example, INVALID, invalidConfig, withAt } from "../../support/invalidConfigs.ts"

const decode = Schema.decodeUnknownResult(Config, { errors: "all", onExcessProperty: "error" })

/** What an operator reads about a configuration. */
const said = (config: unknown, spaces = 0) => {
  const decoded = decode(config)
  const message = Result.isFailure(decoded) ? decoded.failure.message : ""
  const texts = mistakesOf(
    Config,
    config,
    message,
    spaces === 0 ? undefined : JSON.stringify(config, undefined, spaces)
  )
  return problemsOf(texts).map(problemText)
}

const at = (path: string, value: unknown) => said(withAt(example, path.split("."), value))

describe("a mistake in config.json", () => {
  it("is told in words, with the key that was probably meant", () => {
    for (const [path, value, text] of [
      ["modles", {}, "modles: an unknown key; did you mean models?"],
      ["models.large.tempreture", 1, "models.large.tempreture: an unknown key; did you mean temperature?"],
      [
        "gateways.bot-main.token",
        "x",
        "gateways.bot-main.token: an unknown key; the keys are type, secret, api_root, local_files"
      ],
      ["runtime.nework", "open", "runtime.nework: an unknown key; did you mean network?"],
      ["heartbeat_interval_ms", "x", "heartbeat_interval_ms: must be a number"],
      ["heartbeat_interval_ms", "12000", "heartbeat_interval_ms: must be a number, without quotation marks"],
      ["models.large.model", 5, "models.large.model: must be a string: put it in quotation marks"],
      ["models.large.api", "caht", 'models.large.api: must be one of "chat", "responses", "messages"'],
      ["gateways.bot-main.type", "telegrm", 'gateways.bot-main: its "type" must be one of "telegram", "console"'],
      ["postgres", { url: "x" }, "postgres: must have embedded, or url_secret, or host and database and secret"]
    ] as const)
      assert.include(at(path, value), text)
  })

  it("has the line of its key, or of the object that lacks it", () => {
    const config = { ...example, models: { large: { provider: "p", model: "m", endpont: "x" } } }
    const lines = JSON.stringify(config, undefined, 2).split("\n")
    const line = (part: string) => lines.findIndex((text) => text.includes(part)) + 1
    assert.deepStrictEqual(said(config, 2), [
      `models.large.endpont (line ${line("endpont")}): an unknown key; did you mean endpoint?`,
      `models.large.endpoint (line ${line('"large": {')}): is missing`
    ])
  })

  it("never shows the syntax of types", () => {
    for (const row of INVALID) {
      const shown = said(invalidConfig(row)).join("\n")
      assert.notMatch(shown, /Expected|readonly|Missing key|RegExp/u, `${row[0]} = ${JSON.stringify(row[1])}`)
    }
  })
})
