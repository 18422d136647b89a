/** The codes by which somebody whom the operator lets in shows a bot who they are. Pure but for the choice of a code. */
import { randomInt } from "node:crypto"
import { plainWord } from "./typedText.ts"

export const PAIRING_MS_MAX = 600_000
/** Wrong codes of one user within PAIRING_MS_MAX, and of all users of a bot together, which end its codes. */
export const PAIRING_TRIES_MAX = 5
export const PAIRING_BOT_TRIES_MAX = 50

/** Without letters that look like others. */
const LETTERS = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
const HALF_CHARS = 4

/** `ABCD-EFGH`, also in lowercase, with a blank or nothing for the dash, behind /start as a link sends it, or behind the bot's name in a group. Only letters of codes are one, so that few words are. */
const CODE = new RegExp(
  `^\\s*(?:/start(?:@\\w{1,64})?\\s+|@\\w{1,64}[\\s:,]+)?([${LETTERS}]{${HALF_CHARS}})[\\s\\p{Pd}\\u2212]{0,3}([${LETTERS}]{${HALF_CHARS}})\\s*$`,
  "iu"
)

export const newPairingCode = () =>
  Array.from({ length: 2 * HALF_CHARS }, () => LETTERS.charAt(randomInt(LETTERS.length))).join("")

/** The code as a person is shown it. */
export const shownPairingCode = (code: string) => `${code.slice(0, HALF_CHARS)}-${code.slice(HALF_CHARS)}`

/** The code in a text of a stranger, or undefined for a text that cannot be one. */
export const pairingCodeIn = (text: string): string | undefined => {
  const [, first, second] = CODE.exec(plainWord(text)) ?? []
  return first === undefined || second === undefined ? undefined : `${first}${second}`.toUpperCase()
}
