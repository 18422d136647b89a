/** A tool that is tried beside its running agent, in each runtime of its own container: what its manifest says of the network holds there. */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { choirctl, document } from "../support/choirctl.ts"
import { testEngine } from "../support/docker.ts"
import { BASE, docker, ensureBase } from "../support/dockerImage.ts"
import { type InstallationOptions } from "../support/installation.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"
import { ensureDebianPackages } from "../support/packages.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"
import { atFull } from "../support/size.ts"

/** A datagram needs nobody who listens, and a route to somewhere. */
const PROBE = `#!/bin/bash
if (exec 3<>/dev/udp/127.0.0.1/9) 2>/dev/null; then echo '"reached"'; else echo '"cut off"'; fi
`
const probe = (name: string, network: boolean) =>
  [
    name,
    {
      llm: { name, description: "Look for a network.", input_schema: { type: "object" } },
      runtime: { exec_path: name, effect: "none", network }
    },
    PROBE
  ] as const

const tried = Effect.fnUntraced(function* (place: Pick<InstallationOptions, "runtime" | "base">) {
  const provider = yield* makeProvider
  yield* provider.otherwise((request) => offlineModel(request, 0))
  const choir = yield* makeTestInstallation({
    endpoint: provider.endpoint,
    tools: [probe("net.none", false), probe("net.some", true)],
    config: { approvals: { confirm_external: "never" } },
    ...place
  })
  yield* choir.start
  yield* choir.build
  yield* choir.api.agents.start({ params: choir.params, payload: {} })
  for (const [tool, output] of [
    ["net.none", "cut off"],
    ["net.some", "reached"]
  ] as const) {
    const ran = yield* choirctl(choir.home, ["tool", "try", tool, "--json"])
    assert.strictEqual(ran.code, 0, ran.out + ran.err)
    assert.deepInclude(document(ran), { status: "success", output })
  }
  for (const [network, words] of [
    [false, "cut off"],
    [true, "reached"]
  ] as const) {
    const input = JSON.stringify({ command: PROBE.replaceAll('"', ""), network })
    const ran = yield* choirctl(choir.home, ["tool", "try", "choir.exec", "--input", input, "--yes", "--json"])
    assert.include(ran.out, `"stdout":"${words}\\n"`, ran.out + ran.err)
  }
  const [agent] = yield* choir.api.agents.list()
  assert.deepInclude(agent, { status: "running" })
  assert.strictEqual(agent?.health?.epoch, 1)
  assert.deepStrictEqual(readdirSync(join(choir.home, "trials")), [])
  assert.deepStrictEqual(readdirSync(join(choir.home, "socks/agents")), [agent?.session_id ?? ""])
  return choir
})

const bubblewrap = ensureDebianPackages(["bubblewrap"], "trials beside an agent, sandbox")
const engine = testEngine("trials beside an agent, docker")

describe("a tool that is tried beside its agent", () => {
  it.live("runs as the process runtime runs it", () => tried({ runtime: "process" }))

  it.live.skipIf(bubblewrap !== undefined)("runs in a sandbox of its own", () => tried({ runtime: "sandbox" }))

  atFull(it.live.skipIf(engine.reason !== undefined))("runs in a container of its own, of which nothing is left", () =>
    Effect.gen(function* () {
      ensureBase(engine.socket)
      yield* tried({
        runtime: { docker_socket: engine.socket },
        base: `FROM ${BASE}\nCOPY choir-agent.* /opt/choir/\n`
      })
      assert.notInclude(docker(engine.socket, "ps", "--all", "--format", "{{.Names}}"), "choir-trial-")
    })
  )
})
