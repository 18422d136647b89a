/** choirctl home: where a home stands, and that it may work there. */
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import type { AcceptedHome } from "#src/choirctl/home/acceptHome.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { printAdvice } from "#src/choirctl/terminal/print.ts"
import { root } from "#src/choirctl/terminal/root.ts"

const acceptedText = ({ copied, corrected, from, home }: AcceptedHome): string => {
  if (from === null) return `${home} has not moved`
  const paths = corrected.length === 0 ? "no file names the old place" : `paths corrected in ${corrected.join(" and ")}`
  const bots = copied
    ? `\nIts gateways have the bots and mailboxes of ${from}: give it others before both run, or each message reaches only one of them`
    : ""
  return `${home} is accepted, which was at ${from}; ${paths}. Next: choirctl daemon start${bots}`
}

const accept = Command.make(
  "accept",
  {
    copy: Flag.Boolean("copy").pipe(
      Flag.withDescription("Make a copy, whose original is still there, a home of its own"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ copy }) {
    const { home } = yield* root
    const { acceptHome } = yield* Effect.promise(() => import("#src/choirctl/home/acceptHome.ts"))
    const result = yield* onHost(acceptHome(home, copy))
    yield* printAdvice({ ok: true, ...result }, acceptedText)
  })
).pipe(
  Command.withDescription("Let choird start in a home that was moved, and correct the paths in config.json"),
  Command.withExamples([{ command: "choirctl home accept" }])
)

export const home = Command.make("home").pipe(Command.withSubcommands([accept]))
