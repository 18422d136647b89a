import { assert, describe, it } from "@effect/vitest"
import { agentCommand } from "#src/choird/runtime/AgentCommand.ts"
import type { AgentEndpoint } from "#src/choird/runtime/ContainerRuntime.ts"
import { INSIDE, insideCommand } from "#src/choird/runtime/sandbox/SandboxPlan.ts"

const wayOf = (command: ReadonlyArray<string>) =>
  command.filter((each) => /^--(control-plane|socket|endpoint|ca)=/u.test(each))

describe("how an agent is told where choird is", () => {
  const paths = { ...INSIDE, socket: "/home/s/choird.sock" }
  const https: AgentEndpoint = { url: "https://127.0.0.1:9400", pinned: true }

  it("is by its socket, unless there is an endpoint", () => {
    assert.deepStrictEqual(wayOf(agentCommand(paths, undefined, [])), [
      "--control-plane=uds",
      "--socket=/home/s/choird.sock"
    ])
    assert.deepStrictEqual(wayOf(agentCommand(paths, { url: "http://127.0.0.1:9400", pinned: false }, [])), [
      "--control-plane=http",
      "--endpoint=http://127.0.0.1:9400"
    ])
  })

  it("comes with the certificate beside the socket, inside a sandbox as outside", () => {
    assert.deepStrictEqual(wayOf(agentCommand(paths, https, [])), [
      "--control-plane=http",
      "--endpoint=https://127.0.0.1:9400",
      "--ca=/home/s/ca.pem"
    ])
    assert.deepStrictEqual(wayOf(insideCommand(64, https)).at(-1), "--ca=/run/choir/ca.pem")
  })
})
