/** Previews of changes to an agent's repository: where an approved change would go, and the diff of the two states. */
import { Effect, Option, Result } from "effect"
import type { Config } from "#schema/Config.ts"
import type { AgentId } from "#schema/Ids.ts"
import { skillModel } from "#src/choird/agents/skillModel.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { merge } from "#src/choird/repos/Merge.ts"
import { pushProblem, RepoAccess } from "#src/choird/repos/RepoAccess.ts"
import { repoLabel, type Snapshot } from "#src/choird/repos/Repos.ts"
import { checkSource } from "#src/choird/repos/RepoSource.ts"
import type { RepoFile } from "#src/choird/repos/Tree.ts"
import { capabilities } from "#src/choird/runtime/capabilities.ts"
import type { RuntimeStatus } from "#src/choird/runtime/ContainerRuntime.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { difference } from "./Difference.ts"
import {
  badProposal,
  badRepository,
  largeProposal,
  type Proposer,
  unreachable
} from "#src/choird/approvals/ProposalType.ts"

/** Finds the repository that a proposer's change would go to, with the credentials for it. */
export const makeTarget = Effect.gen(function* () {
  const access = yield* RepoAccess
  const config = yield* ConfigStore
  const sessions = yield* SessionStore
  return Effect.fnUntraced(function* ({ agent_id, session_id }: Proposer) {
    const { config: running } = yield* config.current
    const agent: Config["agents"][AgentId] | undefined = Object.hasOwn(running.agents, agent_id)
      ? running.agents[agent_id]
      : undefined
    if (agent === undefined) return yield* badProposal(`config.json no longer has an agent ${agent_id}`)
    const checked = yield* Effect.mapError(Effect.fromResult(checkSource(agent.repo)), unreachable)
    const session = Option.getOrUndefined(yield* databaseDefect(sessions.get(session_id)))
    const git_identity = session?.resource_bindings.git_identity
    const source = yield* access(agent_id, checked, git_identity)
    const problem = pushProblem(source)
    if (problem !== undefined) return yield* badRepository(problem)
    return {
      own: agent.repo,
      source,
      git_identity,
      global: running.global_repo,
      network: running.runtime.network,
      model: skillModel(running, agent_id)
    }
  })
})

/** The diff of two states of the repository, once an image of the second one is known to be valid. */
export const compare = Effect.fnUntraced(function* (
  runtime: RuntimeStatus["type"],
  agent_id: AgentId,
  global: Snapshot,
  before: ReadonlyArray<RepoFile>,
  after: ReadonlyArray<RepoFile>
) {
  const plan = merge(
    { label: repoLabel({ global: true }), files: global.files },
    { label: repoLabel({ agent_id }), files: after },
    capabilities(runtime)
  )
  if (Result.isFailure(plan)) return yield* badProposal(plan.failure.message)
  const found = difference(before, after)
  if (Result.isFailure(found))
    return yield* found.failure.type === "large"
      ? largeProposal(found.failure.reason)
      : badProposal(`${found.failure.path} is not text, so nobody could read it`)
  return found.success.paths.length === 0 ? yield* badProposal("it would change nothing") : found.success
})
