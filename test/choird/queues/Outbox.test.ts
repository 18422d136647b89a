import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { ResourceName } from "#schema/Ids.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { OUTBOX_PAGE_BYTES_MAX, OUTBOX_PAGE_MAX } from "#src/choird/queues/outboxRows.ts"
import { describeStores } from "../../support/engines.ts"
import { newAgent, stores } from "../../support/stores.ts"

let dms = 0
const newMessage = (source_id: string, text = source_id) => ({
  source_id,
  gateway: ResourceName.make("terminal"),
  dm: ResourceName.make(`dm-${dms}`),
  agent_id: newAgent(),
  kind: "refusal" as const,
  text,
  in_reply_to: null
})
/** A DM of the test's own, and messages to it. */
const start = (name: string) => {
  dms += 1
  const dm = ResourceName.make(`dm-${dms}`)
  return { dm, message: (id: string, text?: string) => newMessage(`${name}-${dms}-${id}`, text) }
}

describeStores("Outbox", (it, { kind }) => {
  it.effect("shows the beginning of the question with its answer", () =>
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const inbox = yield* Inbox
      const { dm, message } = start(kind)
      const answer = message("a")
      const { agent_id, gateway } = answer
      const asked = { gateway, client_id: `${dm}-q`, agent_id, dm, text: `why ${"so ".repeat(100)}`, attachments: [] }
      const received = yield* inbox.receive(asked)
      const in_reply_to = received.type === "queued" ? received.inbox_id : null
      yield* outbox.tell({ ...answer, in_reply_to })
      const [row] = yield* outbox.undelivered(dm, undefined)
      assert.strictEqual(row?.question, asked.text.slice(0, 200))
    }).pipe(Effect.provide(stores))
  )

  it.effect("ends what is given up, and what stands in DMs that left config.json, and says so by DM", () =>
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const { dm, message } = start(kind)
      const gone = ResourceName.make(`${dm}-gone`)
      yield* outbox.tell(message("refused"))
      yield* outbox.tell({ ...message("orphan"), dm: gone })
      const [row] = yield* outbox.undelivered(dm, undefined)
      const id = row?.outbox_id ?? ""
      assert.isTrue(yield* outbox.giveUp(id, "Telegram sendMessage: 400"))
      assert.isFalse(yield* outbox.giveUp(id, "again"))
      assert.isAtLeast(yield* outbox.abandon([dm]), 1)
      assert.strictEqual(yield* outbox.abandon([dm]), 0)
      assert.deepStrictEqual(
        [yield* outbox.undelivered(dm, undefined), yield* outbox.undelivered(gone, undefined)],
        [[], []]
      )
      assert.strictEqual(yield* outbox.delivered([id]), 0)
      const told = (yield* outbox.undeliverable).filter((each) => [dm, gone].includes(each.dm))
      assert.deepStrictEqual(told, [
        { dm, count: 1, reason: "Telegram sendMessage: 400" },
        { dm: gone, count: 1, reason: "the DM is not in config.json any more" }
      ])
    }).pipe(Effect.provide(stores))
  )

  it.effect("holds a message once per source_id, in order, until it is delivered", () =>
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const { dm, message } = start(kind)
      const first = message("a")
      yield* outbox.tell(first)
      yield* outbox.tell({ ...first, text: "changed" })
      yield* outbox.tell(message("b"))
      const rows = yield* outbox.undelivered(dm, undefined)
      const { source_id, text } = first
      assert.deepStrictEqual(rows[0], {
        ...first,
        outbox_id: rows[0]?.outbox_id ?? "",
        created_ms: rows[0]?.created_ms ?? 0,
        source: "choird",
        source_id,
        part: 0,
        text,
        question: null,
        reply_to: null,
        thread_id: null,
        follows: false,
        sent_parts: 0,
        failure: null,
        form: null,
        edited_id: null
      })
      assert.strictEqual(rows.length, 2)
      const ids = rows.map(({ outbox_id }) => outbox_id)
      assert.deepStrictEqual(yield* outbox.undelivered(dm, ids[0]), rows.slice(1))
      assert.deepStrictEqual(yield* outbox.undelivered(dm, "nonsense"), rows)
      yield* outbox.failed(ids[0] ?? "")
      yield* outbox.failed("nonsense")
      assert.strictEqual(yield* outbox.delivered([ids[0] ?? "", "nonsense", "9".repeat(19)]), 1)
      assert.strictEqual(yield* outbox.delivered(ids), 1)
      assert.strictEqual(yield* outbox.delivered([]), 0)
      assert.deepStrictEqual(yield* outbox.undelivered(dm, undefined), [])
      const sql = yield* SqlClient.SqlClient
      assert.deepStrictEqual(
        yield* sql`SELECT attempts FROM choir_control.outbox WHERE dm = ${dm} ORDER BY outbox_id`,
        [{ attempts: 1 }, { attempts: 0 }]
      )
    }).pipe(Effect.provide(stores))
  )

  it.effect("remembers which parts of a message are over, and why one of them was refused", () =>
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const { dm, message } = start(kind)
      yield* outbox.tell(message("in parts"))
      const open = Effect.map(outbox.undelivered(dm, undefined), ([row]) => row)
      const outbox_id = (yield* open)?.outbox_id ?? ""
      yield* outbox.sentParts(outbox_id, 1, "no such kind")
      yield* outbox.sentParts(outbox_id, 2)
      const row = yield* open
      assert.deepStrictEqual([row?.sent_parts, row?.failure], [2, "no such kind"])
      assert.isTrue(yield* outbox.giveUp(outbox_id, "no such kind"))
    }).pipe(Effect.provide(stores))
  )

  it.effect("is read in pages", () =>
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const { dm, message } = start(kind)
      const count = OUTBOX_PAGE_MAX + 1
      yield* Effect.forEach(
        Array.from({ length: count }, (_, index) => message(String(index))),
        outbox.tell
      )
      const page = yield* outbox.undelivered(dm, undefined)
      assert.strictEqual(page.length, OUTBOX_PAGE_MAX)
      assert.strictEqual((yield* outbox.undelivered(dm, page.at(-1)?.outbox_id)).length, 1)
    }).pipe(Effect.provide(stores))
  )

  it.effect("is read in pages of as many bytes as one may have, and a longer text alone", () =>
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const { dm, message } = start(kind)
      const half = "x".repeat(OUTBOX_PAGE_BYTES_MAX / 2)
      const texts = [`${half}${half}x`, half, half, "y", "z"]
      yield* Effect.forEach(texts, (text, index) => outbox.tell(message(String(index), text)), { discard: true })
      const pages: Array<number> = []
      let after: string | undefined
      for (;;) {
        const page = yield* outbox.undelivered(dm, after)
        if (page.length === 0) break
        pages.push(page.length)
        after = page.at(-1)?.outbox_id
      }
      assert.deepStrictEqual(pages, [1, 2, 2])
      assert.deepStrictEqual(
        (yield* outbox.waiting(dm, 2)).map(({ bytes }) => bytes),
        texts.slice(0, 2).map(({ length }) => length)
      )
    }).pipe(Effect.provide(stores))
  )

  it.effect("names what is sent next: answers before notices of an agent and cards", () =>
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const { dm, message } = start(kind)
      const sent: Array<string> = []
      assert.isUndefined(yield* outbox.next(dm))
      yield* outbox.tell({ ...message("card"), source_id: `approval/${dm}`, kind: "notice" })
      yield* outbox.tell({ ...message("notice"), kind: "notice" })
      yield* outbox.tell({ ...message("reply"), kind: "reply" })
      for (;;) {
        const row = yield* outbox.next(dm)
        if (row === undefined) break
        sent.push(row.text.replace(/^.*-/u, ""))
        yield* outbox.delivered([row.outbox_id])
      }
      assert.deepStrictEqual(sent, ["notice", "reply", "card"])
    }).pipe(Effect.provide(stores))
  )

  it.effect("shows a reader that goes on after an id every row of racing writers", () =>
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const { dm, message } = start(kind)
      const seen: Array<string> = []
      const read = Effect.gen(function* () {
        const rows = yield* outbox.undelivered(dm, seen.at(-1))
        seen.push(...rows.map(({ outbox_id }) => outbox_id))
      })
      const writes = Array.from({ length: 40 }, (_, index) => outbox.tell(message(String(index))))
      yield* Effect.all([Effect.all(writes, { concurrency: 8 }), Effect.repeat(read, { times: 40 })], {
        concurrency: 2
      })
      yield* read
      assert.deepStrictEqual(
        seen,
        (yield* outbox.undelivered(dm, undefined)).map(({ outbox_id }) => outbox_id)
      )
      assert.strictEqual(seen.length, 40)
    }).pipe(Effect.provide(stores))
  )
})
