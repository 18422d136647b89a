/** Loaded before a program (`node --import`): its clock is CHOIR_TEST_CLOCK_MS ahead of the host's. */
const ahead = Number(process.env["CHOIR_TEST_CLOCK_MS"] ?? 0)
const { now } = Date
const Real = Date
globalThis.Date = class extends Real {
  constructor(...args) {
    super(...(args.length === 0 ? [now() + ahead] : args))
  }
  static now() {
    return now() + ahead
  }
}
