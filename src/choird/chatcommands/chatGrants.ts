/** `/grants`: what an agent may do without asking, and its revocation. */
import { Effect } from "effect"
import type { GrantSummary } from "#schema/Grant.ts"
import { isAdmin } from "#src/choird/approvals/decider.ts"
import { localMinute } from "#src/shared/text/localTime.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import type { Answer } from "./Answer.ts"
import type { Speaker } from "./Speaker.ts"

/** Grants that one answer lists. */
const LISTED_MAX = 20

/** One grant on one line. */
const grantLine = (
  { grant_id, job_name, scope, until, uses, uses_max, words }: GrantSummary,
  zone: string | undefined
): string => {
  const forWhom = scope === "job" ? `for the job ${job_name ?? ""}` : "for the agent"
  return `${grant_id} covers ${words}; ${forWhom}, ${uses} of ${uses_max} used, until ${localMinute(until, zone)}`
}

export const makeChatGrants = Effect.gen(function* () {
  const config = yield* ConfigStore
  const approvals = yield* Approvals

  const list = Effect.fnUntraced(function* ({ agent_id, zone }: Speaker) {
    const standing = yield* approvals.grants({ agent_id, all: false })
    const more = standing.length - LISTED_MAX
    const lines =
      standing.length === 0
        ? [`${agent_id} has no standing grants: it asks each time.`]
        : [
            `${agent_id} may do this without asking:`,
            ...standing.slice(0, LISTED_MAX).map((grant) => grantLine(grant, zone)),
            ...(more > 0 ? [`and ${more} more: choirctl grant list`] : []),
            "To end one: /grants revoke <number>"
          ]
    return { kind: "notice", text: lines.join("\n") } satisfies Answer
  })

  /** An admin revokes any grant in private; another person, and everybody in a group, those of the agent in this chat. */
  const revoke = Effect.fnUntraced(function* (
    grant_id: string,
    { agent_id, dm, gateway, writer }: Speaker
  ): Effect.fn.Return<Answer> {
    const { config: running } = yield* config.current
    const own = dm === writer && isAdmin(running, writer) ? {} : { agent_id }
    const ended = yield* approvals.revokeGrant({ ...own, grant_id, who: `gateway:${gateway}/${writer}` })
    return ended === undefined
      ? { kind: "refusal", text: `There is no grant ${grant_id}. /grants lists them.` }
      : {
          kind: "notice",
          text: `Revoked grant ${ended.grant_id}, which covered ${ended.words}. ${ended.agent_id} asks again from its next call.`
        }
  })

  return { list, revoke }
})
