/** The one commit that was to be built is not what the repository's ref leads to. */
import { Schema } from "effect"
import { AgentId } from "#schema/Ids.ts"
import { CommitId } from "#schema/Image.ts"
import { repoLabel } from "#src/choird/repos/Repos.ts"

/** Nothing was written. */
export class OtherCommit extends Schema.TaggedError<OtherCommit>()("OtherCommit", {
  agent_id: AgentId,
  wanted: CommitId,
  found: CommitId,
  /** Why the repository could not be asked, where `found` is of an earlier fetch. */
  warning: Schema.NullOr(Schema.String)
}) {
  override get message() {
    const where = this.warning ?? `the ${repoLabel(this)} is at ${this.found} by now`
    return `no image of ${this.wanted} was built, since ${where}. Look at the repository, then: choirctl agent update ${this.agent_id}`
  }
}
