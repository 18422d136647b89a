/** choirctl agent delete: an agent taken out of config.json, while its files, sessions and memory stay. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { Config } from "#schema/Config.ts"
import type { AgentId } from "#schema/Ids.ts"
import { ask, choirdAnswers } from "#src/choirctl/client/ask.ts"
import { readConfigText } from "#src/choirctl/home/homeFiles.ts"
import { failed } from "#src/choirctl/terminal/failure.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { yesFlag } from "#src/choirctl/terminal/questions.ts"
import { configPath, root } from "#src/choirctl/terminal/root.ts"
import { decodeFile } from "#src/shared/config/decode.ts"
import { agentId } from "#src/choirctl/commands/flags/arguments.ts"
import { removeEntry } from "./removeEntry.ts"

/** An agent that runs holds what it is bound to, so it is stopped first, at a point of its own. */
const requireStopped = Effect.fnUntraced(function* (home: string, id: AgentId) {
  if (!(yield* choirdAnswers(home))) return
  const known = (yield* ask("agents", (choird) => choird.list())).find(({ agent_id }) => agent_id === id)
  if (known === undefined || known.status === "stopped" || known.status === "crashed") return
  return yield* failed("AGENT_RUNS", `${id} is ${known.status}`, `choirctl agent stop ${id}`)
})

/** The things that a deletion leaves, in sentences. */
const stays = Effect.fnUntraced(function* (home: string, id: AgentId) {
  const { agents, workspaces } = yield* decodeFile(Config)(configPath(home), (yield* readConfigText(home)).text)
  const agent = agents[id]
  if (agent === undefined) return []
  const { path = agent.defaults.workspace } = workspaces[agent.defaults.workspace] ?? {}
  return [
    `Its workspace ${path}, its repository ${agent.repo.url}, its sessions and its memory stay.`,
    `An agent called ${id} that is added again would find its sessions and its memory.`
  ]
})

export const agentDelete = Command.make(
  "delete",
  { id: agentId, yes: yesFlag },
  Effect.fnUntraced(function* ({ id, yes }) {
    const { home } = yield* root
    yield* requireStopped(home, id)
    const { agentRemoval } = yield* Effect.promise(() => import("#src/choirctl/home/removedEntries.ts"))
    const also = yield* stays(home, id)
    yield* removeEntry({ noun: "agent", name: id, yes, also }, (home) => agentRemoval(home, id))
  }, onHost)
).pipe(
  Command.withDescription("Take a stopped agent out of config.json; its files, sessions and memory stay"),
  Command.withExamples([{ command: "choirctl agent delete scribe" }])
)
