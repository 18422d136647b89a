/** Gateways for people. */
import { GATEWAY_CONNECTING } from "#schema/DmsApi.ts"
import { safeLine, working } from "#src/choirctl/terminal/text.ts"

/** A gateway's state, between which and its detail `type` stands. One that has just begun is neither well nor ill yet. */
export const gatewayState = (
  { detail, ok }: { readonly ok: boolean; readonly detail: string },
  color: boolean,
  type?: string
): string => {
  const isNew = !ok && detail === GATEWAY_CONNECTING
  const parts = [isNew ? detail : working(ok, color), type, isNew ? undefined : safeLine(detail)]
  return parts.filter((part) => part !== undefined).join(", ")
}
