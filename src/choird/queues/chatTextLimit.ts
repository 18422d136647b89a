/** How long a text for an agent may be: whatever passes here fits the event that it becomes. */

/** UTF-16 units of a message to an agent, and its bytes as JSON, so that its UserMsg stays far below EVENT_BYTES_MAX. */
export const CHAT_TEXT_CHARS_MAX = 100_000
const CHAT_TEXT_BYTES_MAX = 384 * 1024

/** In words, after what is limited: "a message may have …". */
export const CHAT_TEXT_LIMIT = `at most ${CHAT_TEXT_CHARS_MAX} characters, and ${CHAT_TEXT_BYTES_MAX} bytes where a control character counts as six`

export const isTooLong = (text: string): boolean =>
  text.length > CHAT_TEXT_CHARS_MAX || Buffer.byteLength(JSON.stringify(text)) > CHAT_TEXT_BYTES_MAX
