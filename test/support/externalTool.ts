/** An external tool that is a shell script, with real processes, files and secrets. */
import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer, Redacted, Schema } from "effect"
import { SecretName } from "#schema/Ids.ts"
import { ToolManifest } from "#schema/Tool.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { external } from "#src/agent/tools/external.ts"
import { settingsOf } from "./testing/TestAgent.ts"
import { callIdOf, laneThatSaw, temporaryWorkspace, toolServices } from "./workspace.ts"

const decodeManifest = Schema.decodeUnknownSync(ToolManifest)

type Secrets = Readonly<Record<string, string>>

export const secretsMap = (secrets: Secrets) =>
  new Map(Object.entries(secrets).map(([name, value]) => [SecretName.make(name), Redacted.make(value)]))

interface ExternalToolOptions {
  /** Keys of the manifest's `runtime`. */
  readonly runtime?: object
  readonly input_schema?: object
  /** What the store holds when the tool is made. */
  readonly secrets?: Secrets
}

export const externalTool = Effect.fnUntraced(function* (script: string, options: ExternalToolOptions = {}) {
  const { input_schema = { type: "object" }, runtime = {}, secrets = {} } = options
  const { root, outside } = yield* temporaryWorkspace
  const executable = join(outside, "say")
  writeFileSync(executable, `#!/bin/sh\n${script}\n`)
  chmodSync(executable, 0o755)
  const manifest = decodeManifest({
    llm: { name: "say.it", description: "Says it.", input_schema },
    runtime: { exec_path: "say", ...runtime }
  })
  const services = yield* Layer.build(Layer.merge(SecretStore.layer, AgentSettings.layer(settingsOf(1))))
  const store = yield* Effect.provideContext(Effect.service(SecretStore), services)
  yield* store.replaceAll(secretsMap(secrets))
  const tool = yield* external(manifest, executable).pipe(
    Effect.provideContext(services),
    Effect.provideContext(yield* toolServices(root))
  )
  // Each run is a call of its own, or the end of one would take the processes of another along.
  let calls = 0
  const run = Effect.fnUntraced(function* (input: unknown = {}) {
    const call_id = callIdOf(`s-1-1-${calls++}`)
    return yield* (yield* tool.prepare(input)).run({ ...laneThatSaw(), call_id })
  })
  return { root, tool, run, store }
})
