/** The common part of `gateway remove`, `dm remove`, `model remove` and `agent delete`: check, ask, write, and let a running choird take it over. */
import { Effect } from "effect"
import { choirdAnswers } from "#src/choirctl/client/ask.ts"
import type { Removal } from "#src/choirctl/home/removedEntries.ts"
import { print } from "#src/choirctl/terminal/print.ts"
import { confirm } from "#src/choirctl/terminal/questions.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { onHome } from "#src/shared/files/homeFolder.ts"
import { applyEntries } from "./applyConfig.ts"

interface Asked {
  readonly noun: "agent" | "dm" | "gateway" | "model"
  readonly name: string
  readonly yes: boolean
  /** Sentences about what goes and what stays, above those that follow from the removal itself. */
  readonly also?: ReadonlyArray<string>
}

const about = ({ also = [], name, noun }: Asked, { agents, paths }: Removal): ReadonlyArray<string> => [
  noun === "dm"
    ? `${name} will no longer be able to talk to agents.`
    : noun === "gateway"
      ? `The bot ${name} will be removed from config.json.`
      : `These entries of config.json will be removed or lose ${name}: ${paths.join(", ")}.`,
  ...agents.map((id) => `${id} has ${name} as one of its DMs and will lose it.`),
  ...also
]

const VERBS = { agent: "delete", dm: "remove", gateway: "remove", model: "remove" } as const

/** Running agents keep a DM until they start again; everything else is applied at once. */
const takenOver = Effect.fnUntraced(function* (name: string, { agents, paths }: Removal) {
  const { home } = yield* root
  const apply = (flags = "") => [`choirctl config apply${flags}`]
  if (agents.length > 0)
    return (yield* choirdAnswers(home)) ? { applied: false, next: apply(" --restart") } : { applied: null, next: [] }
  const { applied, note } = yield* applyEntries(name, paths)
  if (note !== undefined) yield* (yield* Screen).note(note)
  return { applied, next: applied === false ? apply() : [] }
})

/** @param removalOf what is removed, as config.json is when this is run. */
export const removeEntry = Effect.fn("choirctl.removeEntry")(function* <E, R>(
  asked: Asked,
  removalOf: (home: string) => Effect.Effect<Removal, E, R>
) {
  const { home } = yield* root
  const { name, noun, yes } = asked
  const { writeRemoval } = yield* Effect.promise(() => import("#src/choirctl/home/removedEntries.ts"))
  const planned = yield* removalOf(home)
  yield* confirm({
    yes,
    about: about(asked, planned),
    ask: `${VERBS[noun] === "delete" ? "Delete" : "Remove"} ${name}?`,
    command: `choirctl ${noun} ${VERBS[noun]} ${name} --yes`
  })
  const removed = yield* writeRemoval(home, removalOf(home))
  const taken = yield* takenOver(name, removed)
  const { secret } = removed
  const next = [...taken.next, ...(secret === undefined ? [] : [`choirctl secret delete ${secret}`])].map((command) =>
    onHome(home, command)
  )
  yield* print({ ok: true, name, applied: taken.applied, next }, () =>
    [
      `${VERBS[noun]}d ${name}`,
      ...(next.length === 0 ? [] : ["", "Next:", ...next.map((command) => `  ${command}`)])
    ].join("\n")
  )
})
