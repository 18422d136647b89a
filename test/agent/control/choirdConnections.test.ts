import { readlinkSync, realpathSync, writeFileSync } from "node:fs"
import { mkdir } from "node:fs/promises"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { CONTAINER_SOCKET, linkSocket } from "#src/agent/control/choirdConnections.ts"
import { INSIDE } from "#src/choird/runtime/sandbox/SandboxPlan.ts"
import { temporaryFolder } from "../../support/engines.ts"

describe("the link to choird's socket", () => {
  it.effect("leads to the socket, is made once, and its absence stops nobody (D10)", () =>
    Effect.gen(function* () {
      assert.strictEqual(CONTAINER_SOCKET, INSIDE.socket)
      const run = yield* temporaryFolder
      yield* Effect.promise(() => mkdir(`${run}/choir`))
      writeFileSync(`${run}/choir/choird.sock`, "")
      yield* linkSocket(`${run}/choir/choird.sock`)
      yield* linkSocket(`${run}/choir/choird.sock`)
      assert.strictEqual(readlinkSync(`${run}/choir.sock`), "choir/choird.sock")
      assert.strictEqual(realpathSync(`${run}/choir.sock`), realpathSync(`${run}/choir/choird.sock`))
      yield* linkSocket(`${run}/nowhere/choir/choird.sock`)
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
