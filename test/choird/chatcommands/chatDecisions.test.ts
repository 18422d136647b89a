import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { EDGE, ResourceName } from "#schema/Ids.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { Choices } from "#src/choird/chatcommands/Choices.ts"
import { APPROVAL_SHOWN_CHARS_MAX, APPROVAL_SUMMARY_CHARS_MAX } from "#src/choird/approvals/approvalText.ts"
import { GatewayCommands } from "#src/choird/chatcommands/GatewayCommands.ts"
import { Gateways } from "#src/choird/gateway/Gateways.ts"
import { alive, asked, audited, BOT, deliver, listen, say, SUMMARY, TABLET } from "../../support/chatDecisions.ts"
import { append, decide, ended, find, proposed, request, requested, traces } from "../../support/confirmations.ts"
import { describeStores } from "../../support/engines.ts"
import { PHONE, reply, userMsg } from "../../support/stores.ts"

describeStores("decisions in a chat", (it) => {
  it.effect("count at once, name what was decided, and are audited with the gateway and the DM", () =>
    Effect.gen(function* () {
      const { agent_id, numbers, talk } = yield* asked(PHONE, "call-a", "call-b")
      const [a = "", b = ""] = numbers
      const card = (yield* traces(talk.caller.session_id)).told[0]
      assert.deepStrictEqual(card?.dm, PHONE)
      assert.include(card?.text, `Tap a button, or send /approve ${a} or /reject ${a}.`)
      assert.deepStrictEqual(yield* say(agent_id, "approved", a), {
        kind: "notice",
        text: `Approved ${a}: ${SUMMARY}.`
      })
      assert.deepStrictEqual(yield* say(agent_id, "rejected", b, { reason: "not now" }), {
        kind: "notice",
        text: `Rejected ${b}: ${SUMMARY}.`
      })
      const [first, second] = [yield* find(a), yield* find(b)]
      assert.deepStrictEqual([first.status, first.resolved_by], ["approved", "gateway:bot/phone"])
      assert.deepStrictEqual([second.status, second.reason], ["rejected", "not now"])
      const { signals } = yield* traces(talk.caller.session_id)
      assert.deepStrictEqual<unknown>(
        signals.map(({ payload }) => payload),
        [
          { approval_id: a, status: "approved" },
          { approval_id: b, status: "rejected" }
        ]
      )
      assert.deepStrictEqual(yield* audited(agent_id), [
        { who: "gateway:bot/phone", action: "approval.approve", refused: null },
        { who: "gateway:bot/phone", action: "approval.reject", refused: null }
      ])
      const again = yield* say(agent_id, "rejected", a)
      assert.deepStrictEqual(again, { kind: "refusal", text: `Approval ${a} was already approved by you: ${SUMMARY}.` })
    }).pipe(alive)
  )

  it.effect("need no number while one thing of this agent waits", () =>
    Effect.gen(function* () {
      const { agent_id, numbers } = yield* asked(PHONE, "call-c")
      const other = yield* asked(PHONE, "call-other")
      assert.deepStrictEqual((yield* say(agent_id, "approved")).text, `Approved ${numbers[0]}: ${SUMMARY}.`)
      // What waits at another agent is offered to an admin and decided by nobody's bare word.
      const lines = (yield* say(agent_id, "approved")).text.split("\n")
      assert.include(lines, `${other.numbers[0]}, ${other.agent_id}: ${SUMMARY}`)
      assert.strictEqual(lines.at(-1), "Send the number to approve it.")
      const nothing = { kind: "notice", text: "Nothing is waiting for your approval." } as const
      assert.deepStrictEqual(yield* say(agent_id, "approved", undefined, { dm: TABLET }), nothing)
      assert.strictEqual((yield* find(other.numbers[0] ?? "")).status, "pending")
    }).pipe(alive)
  )

  it.effect("without a number are refused when a second thing waits, with the list", () =>
    Effect.gen(function* () {
      const { agent_id, numbers } = yield* asked(PHONE, "call-f", "call-g")
      const list = ["Waiting for your approval:", ...numbers.map((number) => `${number}: ${SUMMARY}`)]
      const which = yield* say(agent_id, "rejected")
      assert.strictEqual(which.text, [...list, "Send the number to reject it."].join("\n"))
      const second = numbers[1] ?? ""
      const chosen = yield* Effect.flatMap(Choices, (choices) => choices.take({ gateway: BOT, dm: PHONE }, second))
      assert.strictEqual(chosen, `/reject ${second}`)
      // The second one came after the person had looked: nothing is decided either.
      const approvals = yield* Approvals
      const row = yield* find(numbers[0] ?? "")
      const only = {
        resolution: "approved",
        hash8: row.hash.slice(0, 8),
        who: "gateway:bot/phone",
        reason: null
      } as const
      const refused = yield* Effect.flip(approvals.decide({ approval_id: row.approval_id, ...only, only: true }))
      assert.strictEqual(refused.kind, "NOT_ALONE")
      for (const number of numbers) assert.strictEqual((yield* find(number)).status, "pending")
    }).pipe(alive)
  )

  it.effect("without a number never mean a request whose message has not been delivered as a whole", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { agent_id, numbers, talk } = yield* asked(PHONE, "call-seen", "later-unseen")
      const [seen = ""] = numbers
      const { approval_id: unseen } = yield* request(talk, "later-unseen")
      // The second message is on its way, so that the first is what the person means.
      assert.strictEqual((yield* say(agent_id, "approved")).text, `Approved ${seen}: ${SUMMARY}.`)
      const list = `Waiting for your approval:\n${unseen}: ${SUMMARY}\nSend the number to `
      assert.strictEqual((yield* say(agent_id, "approved")).text, `${list}approve it.`)
      assert.strictEqual((yield* say(agent_id, "rejected")).text, `${list}reject it.`)
      const approvals = yield* Approvals
      const { hash } = yield* find(unseen)
      const wanted = {
        resolution: "approved",
        hash8: hash.slice(0, 8),
        who: "gateway:bot/phone",
        reason: null
      } as const
      const refused = yield* Effect.flip(approvals.decide({ approval_id: unseen, ...wanted, only: true }))
      assert.strictEqual(refused.kind, "NOT_ALONE")
      // A second part of the message is on its way.
      const source_id = `approval/${unseen}`
      yield* sql`INSERT INTO choir_control.outbox (source, source_id, part, gateway, dm, agent_id, session_id, kind, text)
        SELECT source, source_id, 1, gateway, dm, agent_id, session_id, kind, text FROM choir_control.outbox
        WHERE source_id = ${source_id}`
      yield* sql`UPDATE choir_control.outbox SET delivered_at = now() WHERE source_id = ${source_id} AND part = 0`
      assert.strictEqual((yield* say(agent_id, "approved")).text, `${list}approve it.`)
      assert.strictEqual((yield* find(unseen)).status, "pending")
      yield* deliver(PHONE)
      assert.strictEqual((yield* say(agent_id, "approved")).text, `Approved ${unseen}: ${SUMMARY}.`)
    }).pipe(alive)
  )

  it.effect("count from a DM that is not an admin's, for its own agent, and are reported where they were asked", () =>
    Effect.gen(function* () {
      const { agent_id, numbers, talk } = yield* asked(TABLET, "call-h", "call-hh")
      const [h = "", hh = ""] = numbers
      assert.strictEqual((yield* say(agent_id, "approved", h, { dm: TABLET })).text, `Approved ${h}: ${SUMMARY}.`)
      assert.strictEqual((yield* say(agent_id, "rejected", hh)).text, `Rejected ${hh}: ${SUMMARY}.`)
      const told = (yield* traces(talk.caller.session_id)).told.slice(2)
      const edits = told.filter(({ text }) => text.includes(`asked for approval`))
      assert.deepStrictEqual(
        edits.map(({ text }) => text.split("\n")[0]),
        [
          `Approved in the chat tablet: ${SUMMARY} (approval ${h}).`,
          `Rejected in the chat phone: ${SUMMARY} (approval ${hh}).`
        ]
      )
      // The chat that was asked is told of the decision that it did not make.
      const rest = told.filter((row) => !edits.includes(row))
      assert.deepStrictEqual(rest, [{ dm: TABLET, text: `Rejected: ${SUMMARY} (approval ${hh}).` }])
    }).pipe(alive)
  )

  it.effect("reach the approval of another agent from an admin's DM alone; elsewhere it is as unknown as none", () =>
    Effect.gen(function* () {
      const mine = yield* asked(PHONE, "call-i")
      const theirs = yield* asked(PHONE, "call-j")
      const [i = ""] = mine.numbers
      const [j = ""] = theirs.numbers
      for (const number of [j, "999999999"]) {
        const { kind, text } = yield* say(mine.agent_id, "approved", number, { dm: TABLET })
        assert.deepStrictEqual(
          [kind, text],
          ["refusal", `There is no approval ${number}. Waiting for your approval:\n${i}: asked in another chat`]
        )
      }
      assert.strictEqual((yield* find(j)).status, "pending")
      assert.deepStrictEqual(
        (yield* audited(mine.agent_id)).map(({ refused }) => refused),
        ["UNKNOWN_APPROVAL"]
      )
      assert.strictEqual((yield* say(mine.agent_id, "approved", j)).text, `Approved ${j}: ${SUMMARY}.`)
    }).pipe(alive)
  )

  it.effect("are the asker's or an admin's: not another person's of the same agent in a chat of their own", () =>
    Effect.gen(function* () {
      const { agent_id, numbers } = yield* asked(PHONE, "call-of-ada")
      const [number = ""] = numbers
      const ben = { dm: TABLET, writer: TABLET }
      const { kind, text } = yield* say(agent_id, "approved", number, ben)
      assert.strictEqual(kind, "refusal")
      assert.match(text, /^You may not decide this here, because it was asked in another chat\./u)
      assert.strictEqual((yield* find(number)).status, "pending")
      assert.strictEqual((yield* say(agent_id, "approved", number)).text, `Approved ${number}: ${SUMMARY}.`)
    }).pipe(alive)
  )

  it.effect("show in a group no words of a request that was asked in another chat", () =>
    Effect.gen(function* () {
      const { agent_id, numbers } = yield* asked(PHONE, "call-private", "call-secret")
      listen(agent_id)
      const group = { dm: TABLET, writer: PHONE }
      const hidden = numbers.map((number) => `${number}: asked in another chat`).join("\n")
      for (const number of [undefined, "999999"]) {
        const { text } = yield* say(agent_id, "approved", number, group)
        assert.include(text, hidden)
        assert.notInclude(text, SUMMARY)
      }
      assert.include((yield* say(agent_id, "approved", "999999")).text, SUMMARY)
    }).pipe(alive)
  )

  it.effect("in a group count with the rights and in the name of the person who wrote, never with the group's", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const mine = yield* asked(PHONE, "call-group", "call-change")
      const theirs = yield* asked(PHONE, "call-theirs")
      listen(mine.agent_id)
      const [call = "", change = ""] = mine.numbers
      yield* sql`UPDATE choir_control.pending_approvals SET request_type = 'config_change' WHERE id = ${BigInt(change)}`
      const kid = { dm: PHONE, writer: TABLET }
      const refused = yield* say(mine.agent_id, "approved", change, kid)
      assert.match(
        refused.text,
        /^You may not decide this here, because it is about the configuration, which is for an admin\. An admin can/u
      )
      const unknown = yield* say(mine.agent_id, "approved", theirs.numbers[0] ?? "", kid)
      assert.match(unknown.text, /^There is no approval /u)
      assert.strictEqual((yield* find(change)).status, "pending")
      assert.match((yield* say(mine.agent_id, "approved", call, kid)).text, /^Approved /u)
      assert.strictEqual((yield* find(call)).resolved_by, "gateway:bot/tablet")
      assert.deepStrictEqual(
        (yield* audited(mine.agent_id)).map(({ refused: kind, who }) => [who, kind]),
        [
          ["gateway:bot/tablet", "NOT_ADMIN"],
          ["gateway:bot/tablet", "UNKNOWN_APPROVAL"],
          ["gateway:bot/tablet", null]
        ]
      )
      // A member whose own chat is at another agent decides nothing of this one's.
      const guest = { dm: PHONE, writer: ResourceName.make("guest") }
      const [open = ""] = (yield* asked(PHONE, "call-open")).numbers
      const { agent_id: other } = yield* find(open)
      assert.match((yield* say(other, "approved", open, guest)).text, / does not talk with you alone\. /u)
      const parent = { dm: TABLET, writer: PHONE }
      assert.match((yield* say(mine.agent_id, "rejected", change, parent)).text, /^Rejected /u)
      assert.strictEqual((yield* find(change)).resolved_by, "gateway:bot/phone")
    }).pipe(alive)
  )

  it.effect("say how it stands when the decision came too late, and by whom", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { agent_id, numbers } = yield* asked(PHONE, "call-k", "call-l", "call-m")
      const [k = "", l = "", m = ""] = numbers
      yield* decide(k, "approved")
      yield* say(agent_id, "approved", m, { dm: PHONE })
      yield* sql`UPDATE choir_control.pending_approvals SET expires_at = now() - interval '1 second' WHERE id = ${BigInt(l)}`
      assert.strictEqual(
        (yield* say(agent_id, "rejected", k)).text,
        `Approval ${k} was already approved with choirctl: ${SUMMARY}.`
      )
      assert.match((yield* say(agent_id, "approved", l)).text, /^Approval \d+ has expired and nothing was done\./u)
      assert.strictEqual((yield* find(l)).status, "expired")
    }).pipe(alive)
  )

  it.effect("are not a yes to what a chat could not show, and may be a no", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { agent_id, numbers } = yield* asked(PHONE, "call-n")
      const [n = ""] = numbers
      const payload = { tool: "mail.send", input: "x".repeat(APPROVAL_SHOWN_CHARS_MAX), lane: "edge", why: "always" }
      yield* sql`UPDATE choir_control.pending_approvals SET canonical = ${JSON.stringify(payload)} WHERE id = ${BigInt(n)}`
      const refused = yield* say(agent_id, "approved")
      assert.match(refused.text, /^Approval \d+ is too long for a chat.*choirctl approval show \d+/u)
      assert.strictEqual((yield* find(n)).status, "pending")
      assert.match((yield* say(agent_id, "rejected")).text, /^Rejected/u)
    }).pipe(alive)
  )

  it.effect("promise the result of what choird carries out itself", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { agent_id, numbers } = yield* asked(PHONE, "call-w")
      const [w = ""] = numbers
      const payload = { change: [{ op: "set", path: "/budgets/turn_max_steps", value: 9 }], reason: "more room" }
      yield* sql`UPDATE choir_control.pending_approvals
        SET request_type = 'config_change', canonical = ${JSON.stringify(payload)}, shown = 'all of it'
        WHERE id = ${BigInt(w)}`
      assert.strictEqual(
        (yield* say(agent_id, "approved")).text,
        `Approved ${w}: ${SUMMARY}. You will get a message with the result.`
      )
    }).pipe(alive)
  )

  it.effect("are the same request when they come again, whatever has been asked meanwhile (D16)", () =>
    Effect.gen(function* () {
      const { agent_id, numbers, talk } = yield* alive(asked(PHONE, "call-o", "later-p"))
      const once = { request_id: "1000:77" }
      const first = yield* alive(say(agent_id, "approved", undefined, once))
      assert.strictEqual(first.text, `Approved ${numbers[0]}: ${SUMMARY}.`)
      const { approval_id } = yield* alive(request(talk, "later-p"))
      assert.deepStrictEqual(yield* alive(say(agent_id, "approved", undefined, once)), first)
      assert.strictEqual((yield* alive(find(approval_id))).status, "pending")
      assert.lengthOf((yield* alive(traces(talk.caller.session_id))).signals, 1)
    })
  )

  it.effect("that were answered are not made again by a batch that is delivered again (R42)", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { agent_id, numbers, talk } = yield* alive(asked(PHONE, "call-r", "later-t"))
      const number = BigInt(numbers[0] ?? "") + 50n
      const arrivals = [{ id: `1000:${agent_id}`, user_id: "1", text: `/approve ${number}` }]
      const receive = alive(
        Effect.gen(function* () {
          listen(agent_id)
          const gateways = yield* Gateways
          yield* gateways.receive(BOT, arrivals)
        })
      )
      yield* receive
      // The number that was refused belongs to a call by the time that the batch comes again.
      yield* sql`SELECT setval(pg_get_serial_sequence('choir_control.pending_approvals', 'id'), ${number - 1n}::bigint)`
      assert.strictEqual((yield* alive(request(talk, "later-t"))).approval_id, String(number))
      yield* receive
      assert.strictEqual((yield* alive(find(String(number)))).status, "pending")
      const answers = yield* sql<{ readonly text: string }>`SELECT text FROM choir_control.outbox
        WHERE source_id = ${`bot:1000:${agent_id}`}`
      assert.lengthOf(answers, 1)
      assert.include(answers[0]?.text, `There is no approval ${number}.`)
    })
  )

  it.effect("of a call that was set aside say what has to be decided first, and keep why it never ran", () =>
    Effect.gen(function* () {
      const { agent_id, numbers, talk } = yield* asked(PHONE, "call-w", "call-x")
      const [w = "", x = ""] = numbers
      const from = talk.rev
      talk.commit(userMsg(2_000_000), proposed("call-y"), requested("call-y"))
      yield* append(talk, from)
      const { approval_id: y } = yield* request(talk, "call-y")
      assert.strictEqual(
        (yield* say(agent_id, "approved", w)).text,
        `Approved ${w}: ${SUMMARY}. It will run after request ${y} in the chat desk is decided.`
      )
      const before = talk.rev
      talk.commit(
        ended("call-y", "cancelled"),
        reply(2_000_000, "Stopped."),
        ended("call-w", "cancelled"),
        ended("call-x", "cancelled")
      )
      yield* append(talk, before)
      assert.deepInclude(yield* find(w), { status: "approved", outcome: "not run: cancelled" })
      assert.deepInclude(yield* find(x), { status: "expired", reason: "the call has ended" })
    }).pipe(alive)
  )

  it.effect("stand in /status, with what to say", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { agent_id, numbers, talk } = yield* asked(PHONE, "call-s")
      const [s = ""] = numbers
      const status = (dm: ResourceName) =>
        Effect.flatMap(GatewayCommands, (commands) =>
          commands.run(
            { type: "status" },
            {
              agent_id,
              gateway: BOT,
              dm,
              writer: dm,
              request_id: "status",
              admin: dm === PHONE
            }
          )
        )
      // After the time since when it has been running, and before what it has used.
      const between = (text: string) => text.split("\n").slice(1, -1).join("\n")
      assert.strictEqual(
        between((yield* status(PHONE)).text),
        `It is waiting for your approval (number ${s}): ${SUMMARY}.\nTo decide: /approve ${s} or /reject ${s}`
      )
      yield* sql`UPDATE choir_control.pending_approvals SET request_type = 'config_change' WHERE id = ${BigInt(s)}`
      assert.include(
        (yield* status(TABLET)).text,
        `It is waiting for approval (number ${s}): asked in another chat.\nUsed:`
      )
      yield* sql`UPDATE choir_control.pending_approvals SET request_type = 'confirm_tool' WHERE id = ${BigInt(s)}`
      yield* say(agent_id, "rejected", s)
      const lines = (yield* status(PHONE)).text.split("\n")
      assert.match(lines[0] ?? "", new RegExp(`^${agent_id} has been running since .*\\d\\d:\\d\\d UTC\\.$`, "u"))
      assert.deepStrictEqual(lines.slice(1, -1), ["It is working."])
      assert.match(lines.at(-1) ?? "", /^Used: [\d,]+ of \d{1,3}(?:,\d{3})+ tokens, 1 of [\d,]+ tool calls\.$/u)
      const from = talk.rev
      const payload = { skill: "plan", from: "", to: "look", on: "start", step: 0 }
      talk.commit({ event_type: "SkillTransitionCommitted", lane: EDGE, payload })
      yield* append(talk, from)
      assert.include((yield* status(PHONE)).text, "\nSkill: plan, step look.\nUsed: ")
    }).pipe(alive)
  )

  it.effect("are not offered beside a summary that is cut, in /status and in lists", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { agent_id, numbers, talk } = yield* asked(PHONE, "call-u", "later-v")
      const [u = ""] = numbers
      const summary = `${"x".repeat(APPROVAL_SUMMARY_CHARS_MAX - 1)}…`
      yield* sql`UPDATE choir_control.pending_approvals SET summary = ${summary} WHERE id = ${BigInt(u)}`
      const status = Effect.flatMap(GatewayCommands, (commands) =>
        commands.run(
          { type: "status" },
          { agent_id, gateway: BOT, dm: PHONE, writer: PHONE, request_id: "status", admin: true }
        )
      )
      const alone = (yield* status).text
      assert.include(alone, `\nTo decide, see the request above, or choirctl approval show ${u}`)
      assert.notInclude(alone, "/approve")
      const { approval_id: v } = yield* request(talk, "later-v")
      yield* deliver(PHONE)
      const lines = [
        `${u}: ${summary} (see the request above, or choirctl approval show ${u})`,
        `${v}: ${SUMMARY}`
      ].join("\n")
      assert.include((yield* status).text, `\n2 requests are waiting for your approval:\n${lines}`)
      assert.include((yield* say(agent_id, "approved")).text, lines)
    }).pipe(alive)
  )
})
