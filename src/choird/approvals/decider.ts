/** The rule of who may decide an approval in a chat (docs/decisions/people.md). Pure. */
import type { Config } from "#schema/Config.ts"
import type { ResourceName } from "#schema/Ids.ts"
import type { ApprovalRow } from "./approvalRows.ts"

/** Whether a DM is an admin's. */
export const isAdmin = (config: Config, dm: ResourceName): boolean =>
  Object.hasOwn(config.dms, dm) && config.dms[dm]?.admin === true

/**
 * Whether a DM that is bound to the agent may decide: a regular one about everything of its agent but the configuration, which is
 * everybody's and says who is an admin.
 */
export const mayDecide = (
  config: Config,
  dm: ResourceName,
  { request_type }: Pick<ApprovalRow, "request_type">
): boolean => Object.hasOwn(config.dms, dm) && (isAdmin(config, dm) || request_type !== "config_change")
