import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { MailServerOfTests, noMail, type MailServer } from "../../support/mailServer.ts"
import { mailTools } from "../../support/mailAccount.ts"
import { sendUntil } from "./mailKills.ts"
import { LAYER_MS_MAX, SIZE } from "../../support/size.ts"

/** Processes at a time. */
const AT_ONCE = 2

const delivered = (server: MailServer, call: string) =>
  server.files("bob").filter((raw) => raw.includes(`choir.s-1-${call}-0@`)).length

describe.skipIf(noMail !== undefined)("an agent that is killed while it sends a mail", () => {
  it.layer(MailServerOfTests.layer, { timeout: LAYER_MS_MAX })((it) => {
    it.effect(
      `loses none and doubles none, and learns afterwards how it ended, at ${SIZE.mailKills} points`,
      () =>
        Effect.gen(function* () {
          const server = yield* MailServerOfTests
          const { settle } = yield* mailTools(server, "ada")
          const pieces = yield* sendUntil(server, "s-1-whole-0", Infinity)
          yield* server.idle
          assert.strictEqual(delivered(server, "whole"), 1)
          assert.deepInclude(yield* settle("whole"), { status: "success", acted: "verified" })
          // Each piece is a point; more kills than pieces meet the same ones again, at other moments of the servers.
          const points = Array.from({ length: SIZE.mailKills }, (_, n) => 1 + Math.floor((n * pieces) / SIZE.mailKills))
          yield* Effect.forEach(points, (point, n) => sendUntil(server, `s-1-k${n}-0`, point), {
            concurrency: AT_ONCE,
            discard: true
          })
          yield* server.idle
          const fates = new Map<string, number>()
          for (const [n, point] of points.entries()) {
            const { acted, status } = yield* settle(`k${n}`)
            const fate = status === "success" ? "sent" : acted === "unknown" ? "unknown" : "not sent"
            const copies = delivered(server, `k${n}`)
            const where = `killed before piece ${point} of ${pieces}: ${fate}, ${copies} delivered`
            assert.isAtMost(copies, 1, where)
            if (fate === "sent") assert.strictEqual(copies, 1, where)
            if (fate === "not sent") assert.strictEqual(copies, 0, where)
            fates.set(fate, (fates.get(fate) ?? 0) + 1)
          }
          // The points lie before the handover and in it; after it there is only the mark to take away.
          assert.includeMembers([...fates.keys()], ["unknown", "not sent"])
          yield* Effect.logInfo("fates of killed mails", Object.fromEntries(fates))
        }),
      300_000 + 10_000 * SIZE.mailKills
    )
  })
})
