/** What a process holds in its memory, read by root of the host from outside. */
import { closeSync, openSync, readFileSync, readSync } from "node:fs"

const PAGE_BYTES = 4096
const ENTRY_BYTES = 8
const RANGE_BYTES_MAX = 4 * 1024 * 1024
/** 256 bits in base64 for URLs. */
const TOKEN_CHARS = 43
const IN_TOKEN = new Uint8Array(256)
for (const character of Buffer.from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"))
  IN_TOKEN[character] = 1

type Range = readonly [start: number, end: number]

const writable = (pid: number): ReadonlyArray<Range> =>
  [...readFileSync(`/proc/${pid}/maps`, "utf8").matchAll(/^([\da-f]+)-([\da-f]+) rw/gmu)].map(
    ([, start = "0", end = "0"]) => [Number.parseInt(start, 16), Number.parseInt(end, 16)] as const
  )

/** What of a range is there: a program reserves far more than it uses. Bits 62 and 63 of an entry say that a page is somewhere. */
const present = (pagemap: number, [start, end]: Range): ReadonlyArray<Range> => {
  const entries = Buffer.alloc(((end - start) / PAGE_BYTES) * ENTRY_BYTES)
  const read = readSync(pagemap, entries, 0, entries.length, (start / PAGE_BYTES) * ENTRY_BYTES)
  const ranges: Array<[number, number]> = []
  for (let at = 0; at < read; at += ENTRY_BYTES) {
    if ((entries[at + ENTRY_BYTES - 1] ?? 0) < 0x40) continue
    const page = start + (at / ENTRY_BYTES) * PAGE_BYTES
    const last = ranges.at(-1)
    if (last?.[1] === page && page - last[0] < RANGE_BYTES_MAX) last[1] += PAGE_BYTES
    else ranges.push([page, page + PAGE_BYTES])
  }
  return ranges
}

const tokensIn = (bytes: Buffer): ReadonlyArray<string> => {
  const found: Array<string> = []
  let run = 0
  for (let at = 0; at <= bytes.length; at++) {
    if (at < bytes.length && IN_TOKEN[bytes[at] ?? 0] === 1) run++
    else {
      if (run === TOKEN_CHARS) found.push(bytes.toString("latin1", at - run, at))
      run = 0
    }
  }
  return found
}

/** The process lives on: what was there may be gone. */
const bytesOf = (memory: number, [start, end]: Range): Buffer => {
  const bytes = Buffer.alloc(end - start)
  try {
    return bytes.subarray(0, readSync(memory, bytes, 0, bytes.length, start))
  } catch {
    return Buffer.alloc(0)
  }
}

/** Every word of a process's memory that has the form of a token, by its length and between characters of another kind. */
export const tokensInMemory = (pid: number): ReadonlySet<string> => {
  const [memory, pagemap] = [openSync(`/proc/${pid}/mem`, "r"), openSync(`/proc/${pid}/pagemap`, "r")]
  try {
    const ranges = writable(pid).flatMap((range) => present(pagemap, range))
    return new Set(ranges.flatMap((range) => tokensIn(bytesOf(memory, range))))
  } finally {
    closeSync(memory)
    closeSync(pagemap)
  }
}
