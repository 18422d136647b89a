/**
 * The refusals of both APIs. Each is `{"error":{"type","message"}}` with its status; `hint` is the command or change that
 * helps, and no stack trace ever crosses the wire.
 */
import { Schema } from "effect"
import { Rev } from "./Ids.ts"

/** The details of a refusal: `type` is for programs, `message` for people. */
export const ErrorDetail = Schema.Struct({
  type: Schema.String,
  message: Schema.String,
  hint: Schema.optionalKey(Schema.String),
  /** The newest acknowledged revision, with NOT_FLUSHED. */
  ack_rev: Schema.optionalKey(Rev),
  retry_after_ms: Schema.optionalKey(Schema.Natural)
})
export type ErrorDetail = typeof ErrorDetail.Type
const fields = { error: ErrorDetail } as const

export class BadRequest extends Schema.Error<BadRequest>("choir/schema/BadRequest")(fields, { httpApiStatus: 400 }) {
  override get message() {
    return this.error.message
  }
}
export class Unauthorized extends Schema.Error<Unauthorized>("choir/schema/Unauthorized")(fields, {
  httpApiStatus: 401
}) {
  override get message() {
    return this.error.message
  }
}
export class NotFound extends Schema.Error<NotFound>("choir/schema/NotFound")(fields, { httpApiStatus: 404 }) {
  override get message() {
    return this.error.message
  }
}
export class Conflict extends Schema.Error<Conflict>("choir/schema/Conflict")(fields, { httpApiStatus: 409 }) {
  override get message() {
    return this.error.message
  }
}
export class TooLarge extends Schema.Error<TooLarge>("choir/schema/TooLarge")(fields, { httpApiStatus: 413 }) {
  override get message() {
    return this.error.message
  }
}
export class TooMany extends Schema.Error<TooMany>("choir/schema/TooMany")(fields, { httpApiStatus: 429 }) {
  override get message() {
    return this.error.message
  }
}
export class Internal extends Schema.Error<Internal>("choir/schema/Internal")(fields, { httpApiStatus: 500 }) {
  override get message() {
    return this.error.message
  }
}

/** The errors that any endpoint of either API may answer. */
export const ApiErrors = [BadRequest, NotFound, Conflict, TooLarge, TooMany, Internal] as const
export type ApiError = BadRequest | NotFound | Conflict | TooLarge | TooMany | Internal
