/**
 * A payload's canonical text as the bytes that choird stores: the text itself where it is short, else an LZ4 block, which ordinary LZ4
 * libraries read. Postgres compresses nothing in rows below 2 KB, as most events are. The first byte tells the forms apart.
 */
import { Result } from "effect"

/**
 * The common parts of payloads, as canonical text: a stored block refers to it (`storedPayload.ts`). It is never changed, since every
 * block that was written with it is read with it; another one takes another first byte.
 */
export const PAYLOAD_DICTIONARY = [
  `{"attachments":[{"bytes":1,"mime":"application/octet-stream","name":"","path":"inbox/"}],"dm":"me","inbox_id":"1","text":"`,
  `{"budgets":{"max_injections":20,"max_steps":60,"max_tool_calls":200,"wall_time_ms":1800000},"job_id":"`,
  `"job_name":"","model":"","start":{"context_bundle":{"constraints":[],"excerpts":[],"facts":[]},"job_id":"`,
  `"output_schema":{"properties":{},"type":"object"},"task_spec":"","tool_constraints":{"allowed_tools":[],"time_budget_ms":0}}}`,
  `{"job_id":"","outcome":"completed","result":null,"summary":"","usage":{"cost_usd":0.0,"input_tokens":10,"output_tokens":1}}`,
  `{"content":"","refused":"","signal_id":"","source":"control_plane","target":"core:"}{"by":"operator","reason":"","target":"edge","turn":1}`,
  `{"boundary_rev":1,"delta":{"add_fact":{"key":"","source_event":"","value":""},"add_references":[],"mode":"append","summary_update":"`,
  `{"from":"","input":{},"on":"","output":{},"skill":"","step":1,"to":""}{"action":"insert","call_id":"","document_id":"","key":"","store":"`,
  `{"in_reply_to":"1","kind":"notice","text":"{"in_reply_to":"1","kind":"report","text":"{"in_reply_to":"1","kind":"reply","text":"`,
  `{"allowed":{"tools":["choir.exec","choir.core.spawn","choir.core.report","choir.memory.query","choir.fs.search"],"transitions":[]},`,
  `"artifact_ref":"","status":"rejected","summary":"","status":"error","summary":"","status":"timeout","status":"cancelled"}`,
  `{"call_id":"","error":{"kind":"unreachable","message":"","retry_after_ms":1000,"status":500},"finish_reason":"stop","latency_ms":1`,
  `,"model":"","purpose":"report","text":"","tool_calls":[{"call_id":"","input":{"command":"","timeout_ms":60000},"name":"choir-exec"},`,
  `{"call_id":"","input":{"content":"","mode":"overwrite","path":""},"name":"choir-fs-write"},{"call_id":"`,
  `"finish_reason":"tool_calls","latency_ms":1,"model":"","purpose":"turn","tool_calls":[{"call_id":"`,
  `","input":{"path":""},"name":"choir-fs-read"}],"usage":{"cost_usd":0.0,"input_tokens":1,"output_tokens":1}}`,
  `{"approval_id":"1","call_id":"","dirty":true,"effect":"external","input":{"command":"`,
  `"},"locks":[{"mode":"X","resource":"workspace"}],"tool":"choir.exec"}","effect":"workspace","input":{"content":"`,
  `"locks":[{"mode":"X","resource":"file:/workspace/"}],"tool":"choir.fs.write"}`,
  `-0","effect":"none","input":{"path":"","locks":[{"mode":"S","resource":"file:/workspace/"}],"tool":"choir.fs.read"}`,
  `{"call_id":"-1-1-0","duration_ms":1,"output":{"exit_code":0,"stderr":"","stdout":"","truncated":false},"reads":[],"status":"success"`,
  `,"untrusted":true,"writes":[{"after":"","before":"","path":"{"call_id":"","locks":[]}{"call_id":"-1-1-0","duration_ms":0,"output":{"`,
  `"content":"","lines":"","path":"","truncated":false},"reads":[{"path":"","sha256":"`,
  `"}],"status":"success","summary":""}`
].join("")

/** A committed event's canonical bytes (R48). */
export const EVENT_BYTES_MAX = 512 * 1024

/** The first byte of a block that was made with {@link PAYLOAD_DICTIONARY}; the text's size follows in four bytes. A text begins with `{`. */
const BLOCK = 1
const HEAD_BYTES = 5
const TEXT = "{".charCodeAt(0)

/** LZ4: the shortest match, how far back it may lie, and the bytes at the end that are none. */
const MATCH_MIN = 4
const DISTANCE_MAX = 0xffff
const TAIL_BYTES = 5
const LAST_MATCH_BYTES = 12
/** A nibble of a token that says that more bytes of a length follow. */
const LONG = 15

const HASH_BITS = 11
const ROOM_BYTES = 64 * 1024

const dictionary = Buffer.from(PAYLOAD_DICTIONARY)
const START = dictionary.length

/** Memory that begins with the dictionary. */
const roomOf = (bytes: number): Buffer => {
  const room = Buffer.allocUnsafeSlow(START + bytes)
  dictionary.copy(room)
  return room
}

// Nothing else runs meanwhile, so that all but the largest payloads share this memory.
const INPUT = roomOf(ROOM_BYTES)
const OUTPUT = Buffer.allocUnsafeSlow(ROOM_BYTES)
const places = new Int32Array(2 ** HASH_BITS)

// Each index below is within its bytes, so that no default is needed; a lookup with one takes twice as long.
const wordAt = (bytes: Uint8Array, at: number): number =>
  (bytes[at] as number) |
  ((bytes[at + 1] as number) << 8) |
  ((bytes[at + 2] as number) << 16) |
  ((bytes[at + 3] as number) << 24)
const slotOf = (word: number): number => Math.imul(word, 0x9e3779b1) >>> (32 - HASH_BITS)

/** Where the words of the dictionary last begin; 0 is nowhere. */
const dictionaryPlaces = new Int32Array(2 ** HASH_BITS)
for (let at = 1; at + MATCH_MIN <= START; at++) dictionaryPlaces[slotOf(wordAt(dictionary, at))] = at

const writeLength = (out: Uint8Array, start: number, rest: number): number => {
  let [at, left] = [start, rest]
  for (; left >= 255; left -= 255) out[at++] = 255
  out[at++] = left
  return at
}

/** Writes literals and the length of the match after them, 0 for none; answers the end, or 0 where the block would not be shorter. */
const writeSequence = (
  source: Uint8Array,
  from: number,
  to: number,
  distance: number,
  length: number,
  out: Uint8Array,
  start: number
): number => {
  const literals = to - from
  if (start + literals + literals / 255 + length / 255 + 8 > out.length) return 0
  const beyond = length - MATCH_MIN
  out[start] = (Math.min(literals, LONG) << 4) | (length === 0 ? 0 : Math.min(beyond, LONG))
  let at = literals >= LONG ? writeLength(out, start + 1, literals - LONG) : start + 1
  for (let next = from; next < to; next++) out[at++] = source[next] as number
  if (length === 0) return at
  out[at] = distance & 255
  out[at + 1] = distance >>> 8
  return beyond >= LONG ? writeLength(out, at + 2, beyond - LONG) : at + 2
}

/** The block's end in `out`, after its head; 0 where it would not be shorter. */
const compress = (source: Uint8Array, end: number, out: Uint8Array): number => {
  places.set(dictionaryPlaces)
  let literal = START
  let at = START
  let written = HEAD_BYTES
  while (at < end - LAST_MATCH_BYTES) {
    const word = wordAt(source, at)
    const slot = slotOf(word)
    const found = places[slot] as number
    places[slot] = at
    if (found === 0 || at - found > DISTANCE_MAX || wordAt(source, found) !== word) {
      // What has no matches for a while is passed over in longer steps.
      at += 1 + ((at - literal) >>> 5)
      continue
    }
    let length = MATCH_MIN
    while (at + length < end - TAIL_BYTES && source[found + length] === source[at + length]) length += 1
    written = writeSequence(source, literal, at, at - found, length, out, written)
    if (written === 0) return 0
    at += length
    literal = at
  }
  return writeSequence(source, literal, end, 0, 0, out, written)
}

/** The bytes to store for a payload's canonical text. */
export const packPayload = (payload: string): Buffer => {
  const most = 3 * payload.length
  const source = most <= ROOM_BYTES ? INPUT : roomOf(most)
  const end = START + source.write(payload, START)
  const size = end - START
  const out = size <= ROOM_BYTES ? OUTPUT.subarray(0, size) : Buffer.allocUnsafeSlow(size)
  const packed = compress(source, end, out)
  if (packed === 0) return Buffer.from(source.subarray(START, end))
  out[0] = BLOCK
  out.writeUInt32BE(size, 1)
  return Buffer.from(out.subarray(0, packed))
}

/** Fills `out` from START on. Answers whether the block holds exactly that many bytes. */
const decompress = (block: Uint8Array, out: Uint8Array, end: number): boolean => {
  let [at, to] = [HEAD_BYTES, START]
  const lengthOf = (nibble: number): number => {
    let length = nibble
    if (nibble < LONG) return length
    for (let byte = 255; byte === 255; length += byte) byte = block[at++] ?? 0
    return length
  }
  while (at < block.length) {
    const token = block[at++] ?? 0
    const literals = lengthOf(token >>> 4)
    if (at + literals > block.length || to + literals > end) return false
    for (const last = to + literals; to < last;) out[to++] = block[at++] as number
    if (at === block.length) return to === end
    const distance = (block[at] ?? 0) | ((block[at + 1] ?? 0) << 8)
    at += 2
    const length = lengthOf(token & LONG) + MATCH_MIN
    if (distance === 0 || distance > to || to + length > end) return false
    for (const last = to + length; to < last; to++) out[to] = out[to - distance] as number
  }
  return false
}

/** The text of stored bytes, or why they hold none. */
export const unpackPayload = (stored: Uint8Array): Result.Result<string, string> => {
  const bytes = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength)
  if (bytes[0] === TEXT) return Result.succeed(bytes.toString())
  if (bytes[0] !== BLOCK || bytes.length <= HEAD_BYTES) return Result.fail("its payload is stored in an unknown format")
  const size = bytes.readUInt32BE(1)
  if (size > EVENT_BYTES_MAX) return Result.fail(`its payload claims ${size} bytes`)
  const room = size <= ROOM_BYTES ? INPUT : roomOf(size)
  return decompress(bytes, room, START + size)
    ? Result.succeed(room.toString("utf8", START, START + size))
    : Result.fail("its payload is damaged")
}
