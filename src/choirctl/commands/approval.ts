/** choirctl approval: what waits for a person, and the person's decision. */
import { Clock, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { ApprovalId } from "#schema/Ids.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { approvalTable, approvalText, decidedLine } from "#src/choirctl/render/approvals.ts"
import { print } from "#src/choirctl/terminal/print.ts"
import { confirm } from "#src/choirctl/terminal/questions.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { safeLine } from "#src/choirctl/terminal/text.ts"
import { onlyAgent } from "#src/choirctl/commands/flags/arguments.ts"

const approvalId = Argument.String("approval-id").pipe(
  Argument.withDescription("Approval id from choirctl approval list"),
  Argument.withSchema(ApprovalId)
)

const list = Command.make(
  "list",
  {
    agent_id: onlyAgent("approvals"),
    all: Flag.Boolean("all").pipe(Flag.withDescription("Include decided approvals"), Flag.withDefault(false))
  },
  Effect.fnUntraced(function* ({ agent_id, all }) {
    const query = {
      ...(Option.isSome(agent_id) ? { agent_id: agent_id.value } : {}),
      ...(all ? { all: "true" as const } : {})
    }
    const rows = yield* ask("approvals", (choird) => choird.list({ query }))
    const now_ms = yield* Clock.currentTimeMillis
    yield* print(rows, (rows, color) => approvalTable(rows, now_ms, color))
  })
).pipe(
  Command.withDescription("List pending approvals, newest first"),
  Command.withExamples([{ command: "choirctl approval list --all" }])
)

const look = (id: ApprovalId) => ask("approvals", (choird) => choird.show({ params: { id } }))

const show = Command.make(
  "show",
  { id: approvalId },
  Effect.fnUntraced(function* ({ id }) {
    const { home } = yield* root
    const approval = yield* look(id)
    const now_ms = yield* Clock.currentTimeMillis
    yield* print(approval, (approval, color) => approvalText(approval, now_ms, color, home))
  })
).pipe(
  Command.withDescription("Show an approval: the request, the agent, the deadline and the outcome"),
  Command.withExamples([{ command: "choirctl approval show 7" }])
)

/** A decision names what it is about; without the flag that is what choird holds at this moment. */
const hashOf = (id: ApprovalId, hash: Option.Option<string>) =>
  Option.match(hash, {
    onSome: (digits) => Effect.succeed(digits),
    onNone: () => Effect.map(look(id), ({ hash }) => hash.slice(0, 8))
  })

const hash = Flag.String("hash").pipe(
  Flag.filter(
    (digits) => /^[0-9a-f]{8}$/u.test(digits),
    () => "--hash must be the first 8 hexadecimal digits of the hash"
  ),
  Flag.withDescription("First 8 digits of the hash that was shown; a different payload is then refused"),
  Flag.withMetavar("<8 hex>"),
  Flag.optional
)

const approve = Command.make(
  "approve",
  {
    id: approvalId,
    hash,
    grant: Flag.Literals("grant", ["job", "agent"]).pipe(
      Flag.withDescription(
        "Also allow more calls like it: for its job, or for the agent; choirctl grant list shows them"
      ),
      Flag.optional
    ),
    yes: Flag.Boolean("yes").pipe(Flag.withDescription("Approve without asking"), Flag.withDefault(false))
  },
  Effect.fnUntraced(function* ({ grant, hash, id, yes }) {
    const { json } = yield* root
    const screen = yield* Screen
    // The command may have been copied from a chat, where an agent can word a card as well: the facts are choird's, and read here.
    const asked = !yes && !json && screen.interactive ? yield* look(id) : undefined
    if (asked !== undefined)
      yield* confirm({
        yes: false,
        about: [approvalText(asked, yield* Clock.currentTimeMillis, screen.color), ""],
        ask: `Approve ${asked.agent_id}: ${safeLine(asked.summary)}?`,
        command: `choirctl approval approve ${id} --yes`
      })
    const seen = Option.orElse(hash, () => Option.map(Option.fromUndefinedOr(asked), (row) => row.hash.slice(0, 8)))
    const payload = {
      hash: yield* hashOf(id, seen),
      ...(Option.isSome(grant) ? { grant: grant.value } : {})
    }
    yield* print(yield* ask("approvals", (choird) => choird.approve({ params: { id }, payload })), decidedLine)
  })
).pipe(
  Command.withDescription("Approve a pending request, once; on a terminal, show it and ask for confirmation first"),
  Command.withExamples([{ command: "choirctl approval approve 7 --hash 3fa9c012" }])
)

const reject = Command.make(
  "reject",
  {
    id: approvalId,
    hash,
    reason: Flag.String("reason").pipe(
      Flag.withDescription("Reason, stored with the decision and not sent to the agent"),
      Flag.withMetavar("<text>"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ hash, id, reason }) {
    const payload = {
      hash: yield* hashOf(id, hash),
      ...(Option.isSome(reason) ? { reason: reason.value } : {})
    }
    yield* print(yield* ask("approvals", (choird) => choird.reject({ params: { id }, payload })), decidedLine)
  })
).pipe(
  Command.withDescription("Reject a pending request"),
  Command.withExamples([{ command: 'choirctl approval reject 7 --reason "wrong account"' }])
)

export const approval = Command.make("approval").pipe(Command.withSubcommands([list, show, approve, reject]))
