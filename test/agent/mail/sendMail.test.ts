import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { submit } from "#src/agent/mail/sendMail.ts"
import { breakingSmtp, type SmtpEnd, type SmtpStep } from "../../support/breakingSmtp.ts"
import { accountOf } from "../../support/mailAccount.ts"

const MESSAGE = "From: ada@choir.test\r\nTo: bob@choir.test\r\nSubject: Once\r\n\r\nAt one?\r\n"
const BREAKS: ReadonlyArray<SmtpEnd> = ["closes", "resets", "half an answer"]
const BEFORE: ReadonlyArray<SmtpStep> = ["EHLO", "MAIL", "RCPT"]

/** The failure of a handover to a server that ends it so. */
const brokenOff = Effect.fnUntraced(function* (at: SmtpStep, end: SmtpEnd, pipelining = false) {
  const server = yield* breakingSmtp({ at, end, pipelining })
  const config = accountOf({ smtp_port: server.port, imap_port: 1 }, "ada")
  const account = {
    config,
    user: "ada",
    password: Redacted.make("pw"),
    address: "ada@choir.test",
    scrub: (text: string) => text
  }
  const parcel = { recipients: ["bob@choir.test"], raw: Buffer.from(MESSAGE) }
  const { in_doubt, problem, sources } = yield* Effect.flip(submit(account, parcel))
  return { in_doubt, problem, sources, taken: server.taken.length }
})

describe("a handover", () => {
  for (const pipelining of [false, true])
    for (const end of BREAKS)
      it.effect(
        `is in doubt when a server ${pipelining ? "with pipelining " : ""}has the whole message and then ${end}`,
        () =>
          Effect.gen(function* () {
            const { in_doubt, problem, taken } = yield* brokenOff("whole message", end, pipelining)
            assert.strictEqual(taken, 1)
            assert.isTrue(in_doubt)
            assert.match(problem, /closed the connection while it took the mail/u)
          })
      )

  for (const at of BEFORE)
    for (const end of BREAKS)
      it.effect(`is known not to have happened when the server ${end} at ${at}`, () =>
        Effect.gen(function* () {
          const { in_doubt, taken } = yield* brokenOff(at, end)
          assert.deepStrictEqual({ in_doubt, taken }, { in_doubt: false, taken: 0 })
        })
      )

  for (const at of ["MAIL", "RCPT", "DATA", "whole message"] as const)
    for (const pipelining of [false, true])
      it.effect(
        `is known not to have happened when a server ${pipelining ? "with pipelining " : ""}refuses at ${at}`,
        () =>
          Effect.gen(function* () {
            const { in_doubt, problem, sources } = yield* brokenOff(at, "refuses", pipelining)
            assert.isFalse(in_doubt)
            assert.match(problem, /did not accept the mail.*\[untrusted text from mail:127\.0\.0\.1: .*\].*refused/u)
            assert.deepStrictEqual(sources, ["mail:127.0.0.1"])
          })
      )
})
