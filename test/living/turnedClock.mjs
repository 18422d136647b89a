/**
 * Loaded before a program: its clock is ahead of the host's by the time of a file's last change, counted from 1970. Whoever turns the clock sets
 * that time, so that programs that run see it at once, also in a sandbox that shows the file and nothing else of the host.
 */
import { statSync } from "node:fs"

const LOOK_MS = 5
const file = process.env["CHOIR_TEST_CLOCK"] ?? process.argv[1]
const Real = Date
const { now } = Date
let looked = -Infinity
let ahead = 0
const moved = () => {
  const at = performance.now()
  if (at - looked > LOOK_MS) {
    looked = at
    try {
      ahead = Math.round(statSync(file).mtimeMs)
    } catch {}
  }
  return now() + ahead
}
globalThis.Date = class extends Real {
  constructor(...args) {
    super(...(args.length === 0 ? [moved()] : args))
  }
  static now() {
    return moved()
  }
}
