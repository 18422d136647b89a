/** How long a text for an agent may be: whatever passes here fits the event that it becomes. */
import { CHAT_TEXT_BYTES_MAX, CHAT_TEXT_CHARS_MAX } from "#src/shared/limits.ts"

/** In words, after what is limited: "a message may have …". */
export const CHAT_TEXT_LIMIT = `at most ${CHAT_TEXT_CHARS_MAX} characters, and ${CHAT_TEXT_BYTES_MAX} bytes where a control character counts as six`

export const isTooLong = (text: string): boolean =>
  text.length > CHAT_TEXT_CHARS_MAX || Buffer.byteLength(JSON.stringify(text)) > CHAT_TEXT_BYTES_MAX
