/** Sees to it that the agent holds each secret that a tool of its image names, or says what the operator has to do. */
import { Effect } from "effect"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { ControlPlane } from "./ControlPlane.ts"
import { type ImageTool, ToolBroken } from "#src/agent/image/ImageTools.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { secretBehind } from "#src/agent/settings/toolSecrets.ts"

const UNBOUND_FIX =
  "Name a secret of config.json, llm or core_llm, and bind the resource that it belongs to (agents.<id>.defaults)"

/** Asks choird for what the agent does not hold yet. An agent that would miss a secret later does not start now. */
export const requireSecrets = Effect.fnUntraced(function* ({ file, manifest }: ImageTool) {
  const plane = yield* ControlPlane
  const store = yield* SecretStore
  const { config } = (yield* AgentSettings).current()
  const broken = (reason: string) => new ToolBroken({ file, reason })
  for (const name of manifest.runtime.secret_resources) {
    const secret = yield* Effect.mapError(secretBehind(name, config), ({ message }) => broken(message))
    if ((yield* store.get(secret)) !== undefined) {
      yield* store.add([name], new Map())
      continue
    }
    const fetched = plane.secrets([secret]).pipe(
      Effect.catchTag("Denied", ({ reason, type }) => {
        const fix = type === "UNBOUND" ? UNBOUND_FIX : `Set it: choirctl secret set ${secret}`
        return Effect.fail(broken(`secret_resources names "${name}": ${reason}. ${fix}`))
      })
    )
    yield* store.add([name], yield* fetched)
  }
})
