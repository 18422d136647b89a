/** A file of the workspace that goes to a person. The agent keeps a copy of its bytes, so that what is sent is what this event says. */
import { Schema } from "effect"
import { Sha256 } from "./Ids.ts"

/** Files of one message. Telegram shows up to ten in an album. */
export const SENT_FILES_MAX = 10
/** Bytes of one file: what Telegram takes from a bot. */
export const SENT_FILE_BYTES_MAX = 50 * 1024 * 1024

const Path = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(4096))

export const SentFile = Schema.Struct({
  /** Where the tool left it, relative to the workspace. */
  path: Path,
  sha256: Sha256,
  bytes: Schema.Natural.check(Schema.isLessThanOrEqualTo(SENT_FILE_BYTES_MAX)),
  /** Sent as it is, where its bytes would make it a photo, a video or a voice note. */
  as: Schema.optionalKey(Schema.Literal("document")),
  /** The sound of its message's text: of all of it, so that nobody has to read it, or of a part. */
  speaks: Schema.optionalKey(Schema.Literals(["all", "part"]))
})
export type SentFile = typeof SentFile.Type

/** The folder in which tools leave what goes to the person. */
export const SEND_FOLDER = ".choirtmp/send"
/** The agent's copies of files that go out, each under the digest of its bytes. */
export const SENT_COPIES = `${SEND_FOLDER}/.kept`
