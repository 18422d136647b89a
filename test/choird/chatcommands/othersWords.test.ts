/** What shows or removes the words of everybody who talks with an agent. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { AgentId } from "#schema/Ids.ts"
import type { ResourceName } from "#schema/Ids.ts"
import { GatewayCommands } from "#src/choird/chatcommands/GatewayCommands.ts"
import type { Command } from "#src/choird/chatcommands/readCommand.ts"
import { alive, bind, BOT, FAMILY, TABLET } from "../../support/chatDecisions.ts"
import { describeStores } from "../../support/engines.ts"
import { PHONE } from "../../support/stores.ts"

const COMMANDS: ReadonlyArray<Command> = [
  { type: "memory", query: undefined },
  { type: "forget", text: "the salary" },
  { type: "events", count: 3 },
  { type: "context" }
]

const AGENT = AgentId.make("others-words")
let asked = 0
/** Whether each command is refused because several people talk with the agent. */
const refusals = Effect.fnUntraced(function* (writer: ResourceName, dm = writer) {
  const commands = yield* GatewayCommands
  const answers = yield* Effect.forEach(COMMANDS, (command) =>
    // Nothing stands behind the commands here: one that is let through is a defect.
    Effect.catchDefect(
      commands.run(command, {
        agent_id: AGENT,
        gateway: BOT,
        dm,
        writer,
        request_id: `others-${(asked += 1)}`,
        admin: writer === PHONE
      }),
      () => Effect.succeed({ text: "let through" })
    )
  )
  return answers.filter(({ text }) => text.startsWith(`Several people talk with ${AGENT}, so only an admin may use /`))
})

describeStores("what several people told one agent", (it) => {
  it.effect("is shown to and forgotten for an admin alone, also when somebody asks in a group", () =>
    Effect.gen(function* () {
      bind(AGENT, PHONE, TABLET, FAMILY)
      assert.lengthOf(yield* refusals(TABLET), COMMANDS.length)
      assert.lengthOf(yield* refusals(TABLET, FAMILY), COMMANDS.length)
      assert.lengthOf(yield* refusals(PHONE), 0)
    }).pipe(alive)
  )

  it.effect("is theirs to see and to forget where one person talks with the agent", () =>
    Effect.gen(function* () {
      bind(AGENT, TABLET)
      assert.lengthOf(yield* refusals(TABLET), 0)
    }).pipe(alive)
  )
})
