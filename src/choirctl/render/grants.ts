/** Standing grants for people. */
import type { GrantSummary } from "#schema/Grant.ts"
import { safeLine, table } from "#src/choirctl/terminal/text.ts"

/** Characters of an instant to the minute. */
const MINUTE_CHARS = 16

const minute = (at: string): string => at.slice(0, MINUTE_CHARS).replace("T", " ")

export const grantTable = (rows: ReadonlyArray<GrantSummary>, color: boolean): string =>
  rows.length === 0
    ? "no standing grants"
    : table(
        ["GRANT", "AGENT", "FOR", "USED", "UNTIL (UTC)", "COVERS"],
        rows.map(({ agent_id, grant_id, job_name, revoked_at, until, uses, uses_max, words }) => [
          grant_id,
          agent_id,
          job_name ?? "the agent",
          `${uses} of ${uses_max}`,
          revoked_at === null ? minute(until) : `revoked ${minute(revoked_at)}`,
          safeLine(words)
        ]),
        color
      )

export const revokedLine = ({ agent_id, grant_id, words }: GrantSummary): string =>
  `revoked grant ${grant_id} of ${agent_id}: ${safeLine(words)}`
