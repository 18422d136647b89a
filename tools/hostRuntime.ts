/**
 * The runtime of `npm run demo` and `npm start`: one of the host's own, which need no image of an engine, no base image to start from
 * and no network. An operator asks for Docker in config.json.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { choirctl } from "./Programs.ts"

const decodeConfig = Schema.decodeEffect(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Json)))
const decodeDoctor = Schema.decodeEffect(
  Schema.fromJsonString(
    Schema.Struct({
      checks: Schema.Array(
        Schema.Struct({
          name: Schema.String,
          status: Schema.String,
          detail: Schema.String,
          fix: Schema.optionalKey(Schema.String)
        })
      )
    })
  )
)

const isOnPath = (program: string): boolean =>
  (process.env["PATH"] ?? "").split(":").some((folder) => existsSync(join(folder, program)))

/** Why agents are not isolated on this host and what helps, or `undefined` where sandboxes work. */
export const sandboxProblem = Effect.fnUntraced(function* (home: string) {
  const { stdout } = yield* choirctl(home, ["doctor", "--json"])
  const { checks } = yield* decodeDoctor(stdout)
  const sandbox = checks.find(({ name }) => name === "bubblewrap")
  if (sandbox?.status === "ok") return undefined
  if (sandbox === undefined || !isOnPath("bwrap"))
    return "bubblewrap is not installed: no isolation. Fix: apt install bubblewrap"
  return `bubblewrap does not work: no isolation. ${sandbox.detail}. Fix: ${sandbox.fix ?? "choirctl doctor"}`
})

/** Writes the runtime into config.json. */
export const takeRuntime = Effect.fnUntraced(function* (home: string, type: "sandbox" | "process") {
  const file = join(home, "config.json")
  const config = yield* decodeConfig(readFileSync(file, "utf8"))
  yield* Effect.sync(() => writeFileSync(file, JSON.stringify({ ...config, runtime: { type } }, undefined, 2)))
})
