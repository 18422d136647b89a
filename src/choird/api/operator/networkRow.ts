/** The way out of a lane that has read text from outside, in words for an operator. Pure. */
import type { Config } from "#schema/Config.ts"
import type { SystemStatus } from "#schema/SystemApi.ts"

/** @param isCut whether commands can be kept from every network here. */
export const networkRow = (
  confirm_external: Config["approvals"]["confirm_external"],
  isCut: boolean
): NonNullable<SystemStatus["runtime"]["network"]> => {
  if (confirm_external === "never")
    return { enforced: false, detail: "open to commands of every lane: approvals.confirm_external is never" }
  const asks =
    confirm_external === "always" ? "a person is asked" : "a person is asked once their lane has read text from outside"
  return isCut
    ? { enforced: true, detail: `commands have none unless they ask for it; then ${asks}` }
    : {
        enforced: false,
        detail: "cannot be cut off here: each command counts as acting outside, and a person is asked"
      }
}
