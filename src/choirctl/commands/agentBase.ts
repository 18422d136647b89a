/** choirctl agent base: the repository that all agents' images are built from. */
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { printAdvice } from "#src/choirctl/terminal/print.ts"
import { initBaseText } from "#src/choirctl/render/setup.ts"
import { root } from "#src/choirctl/terminal/root.ts"

const init = Command.make(
  "init",
  {
    bare: Flag.Boolean("bare").pipe(
      Flag.withDescription("Make a repository without a work tree, to be pushed to"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ bare }) {
    const { home } = yield* root
    const { initBase } = yield* Effect.promise(() => import("#src/choirctl/home/initBase.ts"))
    const made = yield* onHost(initBase(home, bare ? "bare" : "worktree"))
    yield* printAdvice({ ok: true, ...made }, initBaseText)
  })
).pipe(
  Command.withDescription(
    "Make the global repository that config.json names, with Dockerfile.base, tools, skills and USER.md"
  ),
  Command.withExamples([{ command: "choirctl agent base init" }])
)

export const agentBase = Command.make("base").pipe(
  Command.withDescription("Set up the repository that all agents' images are built from"),
  Command.withSubcommands([init])
)
