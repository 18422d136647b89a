/** What comes after `agent init`: a choird that runs takes the new agent over, and the next commands are those that work then. */
import { Effect } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import { onHome } from "#src/shared/files/homeFolder.ts"
import { applyAddition } from "./applyConfig.ts"
import { choirdAnswers } from "#src/choirctl/client/choirdAnswers.ts"
import { root, startCommand } from "#src/choirctl/terminal/root.ts"
import type { Joined } from "#src/choirctl/render/setup.ts"

/** @param added the new entries of config.json. */
export const joinChoird = Effect.fn("choirctl.joinChoird")(function* (id: AgentId, added: ReadonlyArray<string>) {
  const { home } = yield* root
  const apply = onHome(home, "choirctl config apply")
  const on = ["agent build", "agent start", "chat"].map((command) => onHome(home, `choirctl ${command} ${id}`))
  if (!(yield* choirdAnswers(home))) return { applied: null, next: [startCommand(home), ...on] } satisfies Joined
  const joined = yield* applyAddition(added)
  switch (joined.type) {
    case "applied":
      return { applied: true, next: on } satisfies Joined
    case "other changes":
      return {
        applied: false,
        next: [apply, ...on],
        note: `config.json has other changes that choird has not applied (${joined.paths.join(", ")}), so ${id} is not applied either`
      } satisfies Joined
    case "refused":
      return {
        applied: false,
        next: [apply, ...on],
        note: `choird did not take ${id} over: ${joined.problem}`
      } satisfies Joined
  }
})
