/** Arguments that several commands take. */
import { accessSync, constants, existsSync, statSync } from "node:fs"
import { dirname } from "node:path"
import { Effect, Result, Schema } from "effect"
import { Argument, Flag } from "effect/cli"
import { AgentId, SessionId } from "#schema/Ids.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { usageError } from "#src/choirctl/terminal/failure.ts"

/** Refuses a file to restore that is not there, and names the command that makes one. */
export const requireFile = (file: string, madeBy: string) =>
  Effect.suspend(() => {
    if (statSync(file, { throwIfNoEntry: false })?.isFile() === true) return Effect.void
    const problem = existsSync(file) ? "is not a file" : "does not exist"
    return usageError(`${file} ${problem}`, `name a file that ${madeBy} made`)
  })

/** Refuses a file to write where it could not be, before anything is asked for it. */
export const requirePlace = (file: string) =>
  Effect.suspend(() => {
    const folder = dirname(file)
    if (statSync(file, { throwIfNoEntry: false })?.isDirectory() === true)
      return usageError(`${file} is a folder`, "name a file in it")
    if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true)
      return usageError(`there is no folder ${folder}`, `make it, or choose another place`)
    const isWritable = Result.isSuccess(Result.try(() => accessSync(folder, constants.W_OK)))
    return isWritable ? Effect.void : usageError(`you cannot write in ${folder}`, "choose another place")
  })

export const agentId = Argument.String("agent-id").pipe(
  Argument.withDescription("Agent id from config.json"),
  Argument.withSchema(AgentId)
)

const SessionName = Schema.String.check(
  Schema.isPattern(/^[a-z0-9][a-z0-9-]{0,39}$/u, {
    message: "name a session by its id, the start of its id, or an agent id; choirctl session list shows them"
  })
)

export const sessionName = Argument.String("session").pipe(
  Argument.withDescription("Session id, the start of one, or an agent id for its newest session"),
  Argument.withSchema(SessionName)
)

const isSessionId = Schema.is(SessionId)

/** The id of a named session. A whole id is not looked up. */
export const sessionOf = Effect.fnUntraced(function* (name: string) {
  if (isSessionId(name)) return name
  const { session_id } = yield* ask("retention", (choird) => choird.find({ params: { name } }))
  return session_id
})

/** The reasoning of models is for the model that wrote it; only a whole proof needs it. */
export const reasoning = Flag.Boolean("reasoning").pipe(
  Flag.withDescription("Also print the models' reasoning, so that every payload can be verified"),
  Flag.withDefault(false)
)

/** An agent to narrow a list to. */
export const onlyAgent = (what: string) =>
  Argument.String("agent-id").pipe(
    Argument.withDescription(`Only this agent's ${what}`),
    Argument.withSchema(AgentId),
    Argument.optional
  )
