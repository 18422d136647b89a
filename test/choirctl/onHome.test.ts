import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { cli } from "#src/choirctl/cli.ts"
import { COMMAND_NAMES, DEFAULT_HOME, onHome } from "#src/shared/files/homeFolder.ts"

describe("a text with commands of choirctl", () => {
  it("names the home in each of them, and leaves prose and flags as they are", () => {
    assert.strictEqual(
      onHome("/srv/my choir", "choirctl agent stop a && choirctl agent start a; choird and choirctl differ"),
      "choirctl --home '/srv/my choir' agent stop a && choirctl --home '/srv/my choir' agent start a; choird and choirctl differ"
    )
    assert.strictEqual(onHome("/srv/choir", "choirctl --home /a init"), "choirctl --home /a init")
    assert.strictEqual(onHome("/srv/$&", "choirctl status"), "choirctl --home '/srv/$&' status")
  })

  it("stays as it is for the default home", () => {
    assert.strictEqual(onHome(DEFAULT_HOME ?? "", "choirctl status"), "choirctl status")
  })

  it.effect("is recognised by the names of all commands", () =>
    Effect.gen(function* () {
      const { subcommands } = yield* cli([])
      const names = subcommands.flatMap(({ commands }) => commands.map(({ name }) => name))
      assert.sameMembers([...COMMAND_NAMES], names)
    })
  )
})
