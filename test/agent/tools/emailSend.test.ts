import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { mailTools } from "../../support/mailAccount.ts"

/** Nobody listens there: a mail that would be sent says so. */
const NO_SERVER = { imap_port: 1, smtp_port: 1 }
const PLAN = ".choirtmp/plan.txt"
const MAIL = { to: ["bob@choir.test"], subject: "The plan", text: "Attached.", attachments: [PLAN] }

describe("an attachment", () => {
  it.effect("is shown with its size and digest, and offered to the server as it was shown", () =>
    Effect.gen(function* () {
      const ada = yield* mailTools(NO_SERVER, "ada")
      ada.put(PLAN, "approved")
      const { files, run } = yield* ada.prepareSend(1, MAIL)
      assert.deepStrictEqual(yield* files, { files: [{ path: PLAN, bytes: 8, sha256: sha256("approved") }] })
      assert.match((yield* run).summary, /\(IMAP\) cannot be used.*Nothing was sent/u)
    })
  )

  it.effect("that was changed after a person was asked is not sent", () =>
    Effect.gen(function* () {
      const ada = yield* mailTools(NO_SERVER, "ada")
      ada.put(PLAN, "approved")
      const { files, run } = yield* ada.prepareSend(1, MAIL)
      yield* files
      ada.put(PLAN, "exchanged")
      const { status, summary } = yield* run
      assert.strictEqual(status, "error")
      assert.match(summary, /plan\.txt was changed.*Nothing was sent/u)
    })
  )

  it.effect("that is missing is refused before a person is asked", () =>
    Effect.gen(function* () {
      const ada = yield* mailTools(NO_SERVER, "ada")
      const { files } = yield* ada.prepareSend(1, MAIL)
      assert.match((yield* Effect.flip(files)).problem, /plan\.txt/u)
    })
  )
})
