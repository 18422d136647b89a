/** An agent's identity for git remotes, and where its credentials may go (D14). */
import { Schema } from "effect"
import { SecretName } from "./Ids.ts"

/** It is in git's own configuration, one line a value. */
const Line = Schema.String.check(
  Schema.isPattern(/^[^\p{Cc}]{1,200}$/u, { message: "must be one line of 1 to 200 characters" })
)

/** `https://host[:port][/path]`, or `ssh://[user@]host[:port]`. */
export const GitRemote = Schema.String.check(
  Schema.isPattern(
    /^(?:https:\/\/[A-Za-z0-9.-]+(?::\d{1,5})?(?:\/[^\s%\\?#]*)?|ssh:\/\/(?:[a-z_][a-z0-9_-]{0,31}@)?[A-Za-z0-9.-]+(?::\d{1,5})?)$/u,
    { message: "must be https://host[:port][/path] or ssh://[user@]host[:port]" }
  )
)
export type GitRemote = typeof GitRemote.Type

/** `secret` is a token, `user:token`, or a private SSH key. */
export const GitIdentity = Schema.Struct({
  name: Line,
  email: Line,
  secret: SecretName,
  /** The only remotes that get the credentials; an https path counts as a prefix of whole segments. */
  remotes: Schema.optionalKey(Schema.Array(GitRemote).check(Schema.isMaxLength(16))),
  /** Lines of a known_hosts file. Without them the first key that a host shows is believed. */
  known_hosts: Schema.optionalKey(Schema.Array(Line).check(Schema.isMaxLength(64)))
})
export type GitIdentity = typeof GitIdentity.Type
