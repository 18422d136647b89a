/** Which messages of a person belong together (R42): Telegram cuts a long text into several messages, and sends an album file by file. Pure. */
import type { Join } from "#src/choird/queues/messageJoin.ts"
import type { Arrival } from "./route.ts"

/** UTF-16 units above which a text may be a piece of a longer one: apps cut it at 4,096, or before that at the end of a paragraph or a word. */
const JOIN_TEXT_CHARS_MIN = 2048
/** UTF-16 units of a full piece, which has one less where a pair would have been cut. */
const JOIN_TEXT_CHARS_FULL = 4095
/** UTF-16 units at the end of a piece in which every app finds a blank to cut at. */
const JOIN_TEXT_BLANK_CHARS = 300
/** The wait for the next piece of a text, and for the next file of an album. */
const JOIN_TEXT_QUIET_MS = 1500
const JOIN_ALBUM_QUIET_MS = 1000

/** A piece of full length without a blank near its end was cut within a word; at every other cut a blank is lost. */
const isCutInWord = (text: string): boolean =>
  text.length >= JOIN_TEXT_CHARS_FULL && !/\s/u.test(text.slice(-JOIN_TEXT_BLANK_CHARS))

/** @param problem choird's remark on a file that did not arrive */
export const joinOf = (
  { album, file, forwarded = false, text = "", thread_id, user_id }: Arrival,
  problem: string | undefined
): Join => {
  const sender = `${user_id}/${thread_id ?? ""}`
  const words = [text, problem ?? ""].filter((line) => line !== "").join("\n")
  const own = forwarded ? "forwarded" : "own"
  if (file !== undefined)
    return album === undefined
      ? { sender, key: "file", text: words, glue: "\n", quiet_ms: 0 }
      : { sender, key: `album/${album}/${own}`, text: words, glue: "\n", quiet_ms: JOIN_ALBUM_QUIET_MS }
  return {
    sender,
    key: `text/${own}`,
    text: words,
    glue: isCutInWord(text) ? "" : "\n",
    quiet_ms: text.length > JOIN_TEXT_CHARS_MIN ? JOIN_TEXT_QUIET_MS : 0
  }
}
