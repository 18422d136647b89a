/** The address of a service in config.json. */
import { Schema } from "effect"

/** Without a user or password, which would show in messages and logs: credentials are secrets. */
export const Url = Schema.String.check(
  Schema.isPattern(/^https?:\/\/[^\s/?#@]+([/?#]|$)/u, {
    message: "must be an http:// or https:// address without a user and password"
  })
)
