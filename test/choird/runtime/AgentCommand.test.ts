import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { Redacted } from "effect"
import { agentCommand, agentEnvironment, cgroupOf, hostTimeZone } from "#src/choird/runtime/AgentCommand.ts"
import { isTimeZone } from "#schema/TimeZone.ts"
import type { AgentEndpoint, ContainerSpec } from "#src/choird/runtime/ContainerRuntime.ts"
import { INSIDE, insideCommand } from "#src/choird/runtime/sandbox/SandboxPlan.ts"

const wayOf = (command: ReadonlyArray<string>) =>
  command.filter((each) => /^--(control-plane|socket|endpoint|ca)=/u.test(each))

describe("the environment of an agent", () => {
  const spec = {
    agent_id: "ada",
    session_id: "0123456789abcdef",
    bootstrap_token: Redacted.make("t")
  } as unknown as ContainerSpec

  it("has the time zone of choird, in every runtime", () => {
    const own = new Intl.DateTimeFormat().resolvedOptions().timeZone
    assert.strictEqual(agentEnvironment(spec, "/bin")["TZ"], own)
    assert.strictEqual(agentEnvironment(spec, "/bin", "Europe/Berlin")["TZ"], "Europe/Berlin")
  })

  it("has the word that the machine's authorities are trusted where choird's own has it, and nothing else of it", () => {
    const of = (trust: string | undefined) => agentEnvironment(spec, "/bin", "UTC", trust)
    assert.deepStrictEqual(of("1"), { ...of(undefined), NODE_USE_SYSTEM_CA: "1" })
    for (const other of ["", "0", "true", "1\nLD_PRELOAD=x"]) assert.deepStrictEqual(of(other), of(undefined))
  })

  it("has no time zone but one of the IANA database", () => {
    for (const name of ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5"])
      assert.isTrue(isTimeZone(name), name)
    for (const name of [
      "",
      ":/etc/localtime",
      "../../etc/passwd",
      "/etc/localtime",
      "CET-1CEST",
      "+03:00",
      "Etc/Unknown",
      "Europe/Nowhere",
      "UTC\nLD_PRELOAD=x",
      "Europe/Berlin\0"
    ])
      assert.isFalse(isTimeZone(name), JSON.stringify(name))
  })

  it("has the time zone that TZ gives choird", () => {
    assert.strictEqual(hostTimeZone(), new Intl.DateTimeFormat().resolvedOptions().timeZone)
    for (const TZ of ["Pacific/Kiritimati", "America/New_York"]) {
      const program = `import { hostTimeZone } from "#src/choird/runtime/AgentCommand.ts"; console.log(hostTimeZone())`
      const args = ["--input-type=module", "--eval", program]
      assert.strictEqual(execFileSync(process.execPath, args, { env: { TZ }, encoding: "utf8" }).trim(), TZ)
    }
  })
})

describe("the control group of an agent", () => {
  it("is another one in a copy of its home, which has the same session and epoch", () => {
    const of = (home: string) =>
      cgroupOf({
        session_id: "0123456789abcdef",
        epoch: 3,
        socket_dir: `${home}/socks/agents/0123456789abcdef`
      } as unknown as ContainerSpec)
    assert.strictEqual(of("/a"), of("/a"))
    assert.notStrictEqual(of("/a"), of("/b"))
  })
})

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
