/** Every way to decide, to read what waits and to end a grant, by who does it, about whose agent, and where (R46, D16). */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { type AgentId, ApprovalId } from "#schema/Ids.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { CardTaps } from "#src/choird/chatcommands/CardTaps.ts"
import { Gateways } from "#src/choird/gateway/Gateways.ts"
import type { SentAs } from "#src/choird/queues/Outbox.ts"
import { alive, asked, bind, BOT, FAMILY, GROUP_ID, listen, TABLET } from "../../support/chatDecisions.ts"
import { find } from "../../support/confirmations.ts"
import { describeStores } from "../../support/engines.ts"
import { DESK, PHONE } from "../../support/stores.ts"

const PEOPLE = { admin: "1", regular: "3", stranger: "2" } as const
type Who = keyof typeof PEOPLE
const PLACES = ["private", "topic", "group"] as const
type Where = (typeof PLACES)[number]
type Whose = "own" | "other"

/** A request that waits, and a grant that stands, of one agent. */
interface Subject {
  readonly approval_id: string
  /** The data of the buttons of its card, and the message that the card is. */
  readonly data: ReadonlyArray<string>
  readonly on: SentAs | undefined
  readonly grant_id: string
}

/** One action, and whether it had its effect: `answer` is what the chat got. */
interface Action {
  readonly text?: (subject: Subject) => string
  readonly tap?: (subject: Subject) => string
  /** The request is a change of config.json. */
  readonly change?: true
  /** It changes nothing. */
  readonly reads?: true
  readonly done: (subject: Subject, answer: string) => Effect.Effect<boolean, unknown, Approvals>
}

const is = (status: string) => (subject: Subject) =>
  Effect.map(find(subject.approval_id), (row) => row.status === status)
const standing = Effect.flatMap(Approvals, (approvals) => approvals.grants({ all: false }))
const isRevoked = ({ grant_id }: Subject) =>
  Effect.map(standing, (all) => !all.some((one) => one.grant_id === grant_id))
const isGranted = ({ approval_id }: Subject) =>
  Effect.map(standing, (all) => all.some((one) => one.approval_id === approval_id))

const button =
  (letter: string) =>
  ({ data }: Subject): string =>
    data.find((one) => one.startsWith(`${letter}:`)) ?? ""

const ACTIONS = {
  // First, while few requests of others wait: a list is cut.
  "read what waits": {
    text: () => "/approvals",
    reads: true,
    done: ({ approval_id }, answer) =>
      Effect.succeed(answer.includes(`${approval_id}:`) || answer.includes(`${approval_id},`))
  },
  approve: { text: ({ approval_id }) => `/approve ${approval_id}`, done: is("approved") },
  reject: { text: ({ approval_id }) => `/reject ${approval_id}`, done: is("rejected") },
  "reject a change of config.json": {
    text: ({ approval_id }) => `/reject ${approval_id}`,
    change: true,
    done: is("rejected")
  },
  tap: { tap: button("a"), done: is("approved") },
  "tap for a change of config.json": {
    tap: button("r"),
    change: true,
    done: is("rejected")
  },
  "tap for the agent until a date": { tap: button("g"), done: isGranted },
  "list grants": {
    text: () => "/grants",
    reads: true,
    done: ({ grant_id }, answer) => Effect.succeed(answer.includes(`\n${grant_id} covers `))
  },
  "revoke a grant": { text: ({ grant_id }) => `/grants revoke ${grant_id}`, done: isRevoked }
} as const satisfies Readonly<Record<string, Action>>
type Name = keyof typeof ACTIONS

/** What docs/telegram.md says of roles, written again and shorter. */
const expected = (name: Name, who: Who, whose: Whose, where: Where): boolean => {
  if (who === "stranger") return false
  const admins = name.includes("config.json") || name === "tap for the agent until a date"
  if (who === "regular") return whose === "own" && !admins
  if (whose === "own") return true
  // A tap is answered to the person alone; a group would read about another agent.
  return name !== "list grants" && (name.startsWith("tap") || where !== "group")
}

let said = 0

/** An agent with a request and a grant. What a regular person decides by a number was asked in their chat; all else in the admin's, whose cards have every button. */
const subjectOf = Effect.fnUntraced(function* (change: boolean, isOfAdmin: boolean) {
  const approvals = yield* Approvals
  const sql = yield* SqlClient.SqlClient
  const { agent_id, numbers } = yield* asked(isOfAdmin ? PHONE : TABLET, "call-granted", "call-open")
  const [granted = "", open = ""] = numbers
  const { hash } = yield* find(granted)
  const card = yield* approvals.card(open)
  yield* approvals.decide({
    approval_id: ApprovalId.make(granted),
    resolution: "approved",
    hash8: hash.slice(0, 8),
    who: "gateway:bot/phone",
    reason: null,
    grant: "agent"
  })
  const [grant] = yield* approvals.grants({ agent_id, all: false })
  if (change)
    yield* sql`UPDATE choir_control.pending_approvals SET request_type = 'config_change' WHERE id = ${BigInt(open)}`
  return { agent_id, approval_id: open, data: card?.data ?? [], on: card?.sent, grant_id: grant?.grant_id ?? "" }
})

/** Whether a person in a place has the effect on a subject. */
const tried = Effect.fnUntraced(function* (action: Action, subject: Subject, who: Who, where: Where) {
  const sql = yield* SqlClient.SqlClient
  const id = `m-${(said += 1)}`
  const user_id = PEOPLE[who]
  if (action.tap !== undefined) {
    const taps = yield* CardTaps
    const answer = yield* taps.tap(BOT, { id, user_id, data: action.tap(subject), on: subject.on })
    assert.strictEqual(answer === undefined, who === "stranger")
  } else {
    const arrival = { id, user_id, text: action.text?.(subject) ?? "" }
    const group = { chat_id: GROUP_ID, writer: "Ada", addressed: true }
    const place = where === "private" ? {} : where === "topic" ? { thread_id: 7 } : { group }
    yield* Effect.flatMap(Gateways, (gateways) => gateways.receive(BOT, [{ ...arrival, ...place }]))
  }
  const rows = yield* sql<{ readonly text: string }>`SELECT text FROM choir_control.outbox
    WHERE source_id = ${`${BOT}:${id}`} ORDER BY part`
  if (who === "stranger") assert.deepStrictEqual(rows, [])
  return yield* action.done(subject, rows.map(({ text }) => text).join(""))
})

/** The person's own agent, and one at the console, each made again once it had the effect. */
const makeSubjects = Effect.fnUntraced(function* (action: Action) {
  const made = new Map<Whose, Subject & { readonly agent_id: AgentId }>()
  const make = Effect.fnUntraced(function* (whose: Whose) {
    const subject = yield* subjectOf(action.change === true, action !== ACTIONS.approve && action !== ACTIONS.reject)
    bind(subject.agent_id, ...(whose === "own" ? [PHONE, TABLET, FAMILY] : [DESK]))
    made.set(whose, subject)
    listen(...[...made.values()].map(({ agent_id }) => agent_id))
    return subject
  })
  yield* make("own")
  yield* make("other")
  return {
    get: (whose: Whose) => Effect.suspend(() => Effect.succeed(made.get(whose) as Subject)),
    spent: (whose: Whose) => (action.reads === true ? Effect.void : Effect.asVoid(make(whose)))
  }
})

describeStores("each decision, list and revocation", (it) => {
  for (const name of Object.keys(ACTIONS) as ReadonlyArray<Name>)
    it.effect(`counts by the rights of who does it, in private, in a topic and in a group: ${name}`, () =>
      Effect.gen(function* () {
        const action: Action = ACTIONS[name]
        const subjects = yield* makeSubjects(action)
        for (const who of Object.keys(PEOPLE) as ReadonlyArray<Who>)
          for (const whose of ["own", "other"] as const)
            for (const where of PLACES) {
              const done = yield* tried(action, yield* subjects.get(whose), who, where)
              assert.strictEqual(done, expected(name, who, whose, where), `${who}, ${whose} agent, ${where}`)
              if (done) yield* subjects.spent(whose)
            }
      }).pipe(alive)
    )
})
