import { SessionId } from "#schema/Ids.ts"

const DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
const RANDOM_BITS = 32n

/** 48 bits of milliseconds, then 32 random bits, as 16 Crockford base32 digits: later sessions sort after earlier ones. */
export const sessionId = (now_ms: number, random: Uint8Array): SessionId => {
  const low = Buffer.from(random).readUInt32BE(0)
  const bits = (BigInt(now_ms) << RANDOM_BITS) | BigInt(low)
  const digits = Array.from({ length: 16 }, (_, index) => DIGITS[Number((bits >> BigInt(75 - 5 * index)) & 31n)])
  return SessionId.make(digits.join(""))
}
